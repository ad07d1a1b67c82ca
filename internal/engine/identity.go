// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Identity is the user that requests are sent as. Controllers share watches only within one
// identity, because a watch delivers only objects that its identity may see.
type Identity struct {
	Config  *rest.Config
	Client  *kubeapi.Client
	Dynamic dynamic.Interface
	// Metadata requests only the metadata of objects.
	Metadata metadata.Interface
	Watches  *watcher.Set
}

// Resource returns the dynamic client of a kind, in the namespace if the kind is
// namespaced.
func (id *Identity) Resource(kind kinds.Kind, namespace string) dynamic.ResourceInterface {
	if !kind.Namespaced {
		return id.Dynamic.Resource(kind.GVR())
	}
	return id.Dynamic.Resource(kind.GVR()).Namespace(namespace)
}

// NewIdentity returns the identity of a client configuration. It sends no request.
func NewIdentity(config *rest.Config, watches watcher.Config) (*Identity, error) {
	id := &Identity{Config: config}
	var err error
	if id.Client, err = kubeapi.NewClient(config); err != nil {
		return nil, err
	}
	if id.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if id.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	watching, err := watcher.NewClient(config)
	if err != nil {
		return nil, err
	}
	id.Watches = watcher.NewSet(watching, watches)
	return id, nil
}

// Identities holds the process's own identity and those of the users that controllers
// impersonate. It is safe for concurrent use.
type Identities struct {
	Own *Identity
	// Watches configures all watches, those of Own included. Its Tenant is that of the
	// controllers that are their own tenants, which the operator configures.
	Watches watcher.Config
	// MaxCache and MaxWatches bound the cached bytes and the watches of each other tenant;
	// 0 is no bound.
	MaxCache   int64
	MaxWatches int
	// Budget is charged for the cached objects of each other tenant; it may be nil.
	Budget *share.Budget

	plain   *rest.Config     // of the process
	refused chan identityKey // of requests; see Run
	mu      sync.Mutex
	others  map[identityKey]*used // guarded by mu
}

// NewIdentities returns the identities of a process with this client configuration. It sends
// no request.
func NewIdentities(config *rest.Config, watches watcher.Config) (*Identities, error) {
	watches.Tenant = watcher.NewTenant(0, 0, nil)
	ids := &Identities{Watches: watches, others: map[identityKey]*used{}, refused: make(chan identityKey, 64)}
	config = rest.CopyConfig(config)
	ids.plain = rest.CopyConfig(config)
	ids.reporting(config, identityKey{})
	var err error
	ids.Own, err = NewIdentity(config, watches)
	return ids, err
}

// identityKey names an identity. tenant is empty for controllers that are their own tenants.
type identityKey struct{ user, tenant string }

// used is an identity with the number of its users.
type used struct {
	*Identity

	tenant *watcher.Tenant
	users  int
}

// As returns the identity of a user, or of the process if user is empty, with the caches of a
// tenant. The caller must call release exactly once; an identity without users is forgotten.
func (ids *Identities) As(user, tenant string) (_ *Identity, release func(), err error) {
	if share.IsOwnTenant(tenant) {
		tenant = ""
	}
	key := identityKey{user, tenant}
	if key == (identityKey{}) {
		return ids.Own, func() {}, nil
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.others[key]
	if id == nil {
		if id, err = ids.add(key); err != nil {
			return nil, nil, err
		}
	}
	id.users++
	return id.Identity, func() {
		ids.mu.Lock()
		defer ids.mu.Unlock()
		if id.users--; id.users == 0 {
			delete(ids.others, key)
		}
	}, nil
}

// add adds an identity. The caller holds mu.
func (ids *Identities) add(key identityKey) (*used, error) {
	config := rest.CopyConfig(ids.plain)
	if key.user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: key.user}
	}
	ids.reporting(config, key)
	watches := ids.Watches
	if key.tenant != "" {
		watches.Tenant, watches.Log = ids.tenant(key.tenant), logging.ForTenant(watches.Log, key.tenant)
	}
	id, err := NewIdentity(config, watches)
	if err != nil {
		return nil, failure.Cluster.Wrap(fmt.Errorf("user %s: %w", key.user, err))
	}
	ids.others[key] = &used{Identity: id, tenant: watches.Tenant}
	return ids.others[key], nil
}

// tenant returns a tenant, which exists while it has an identity. The caller holds mu.
func (ids *Identities) tenant(name string) *watcher.Tenant {
	for key, id := range ids.others {
		if key.tenant == name {
			return id.tenant
		}
	}
	return watcher.NewTenant(ids.MaxCache, ids.MaxWatches, share.NewAccount(ids.Budget, name, share.Objects))
}

// Others returns the number of impersonated users.
func (ids *Identities) Others() int {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return len(ids.others)
}

// EachWatch calls yield with the state of each watch of all identities.
func (ids *Identities) EachWatch(yield func(watcher.Source, watcher.State)) {
	for _, set := range ids.sets() {
		for source, state := range set.States() {
			yield(source, state)
		}
	}
}

// Retry makes all watches retry that failed. See watcher.Set.Retry.
func (ids *Identities) Retry() {
	for _, set := range ids.sets() {
		set.Retry()
	}
}

// sets returns the watches of all identities.
func (ids *Identities) sets() map[identityKey]*watcher.Set {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	sets := map[identityKey]*watcher.Set{{}: ids.Own.Watches}
	for key, id := range ids.others {
		sets[key] = id.Watches
	}
	return sets
}
