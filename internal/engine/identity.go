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
	"github.com/wasmctl/wasmctl/internal/failure"
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
	// Watches configures the watches of impersonated users.
	Watches watcher.Config

	mu     sync.Mutex
	others map[string]*used // by user; guarded by mu
}

// used is an impersonated identity with the number of its users.
type used struct {
	*Identity

	users int
}

// As returns the identity of a user, or the process's own if user is empty. The caller must
// call release exactly once; an identity without users is forgotten.
func (ids *Identities) As(user string) (_ *Identity, release func(), err error) {
	if user == "" {
		return ids.Own, func() {}, nil
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.others[user]
	if id == nil {
		if id, err = ids.impersonated(user); err != nil {
			return nil, nil, err
		}
	}
	id.users++
	return id.Identity, func() {
		ids.mu.Lock()
		defer ids.mu.Unlock()
		if id.users--; id.users == 0 {
			delete(ids.others, user)
		}
	}, nil
}

// impersonated adds the identity of a user. The caller holds mu.
func (ids *Identities) impersonated(user string) (*used, error) {
	config := rest.CopyConfig(ids.Own.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	id, err := NewIdentity(config, ids.Watches)
	if err != nil {
		return nil, failure.Cluster.Wrap(fmt.Errorf("user %s: %w", user, err))
	}
	if ids.others == nil {
		ids.others = map[string]*used{}
	}
	ids.others[user] = &used{Identity: id}
	return ids.others[user], nil
}

// Others returns the number of impersonated users.
func (ids *Identities) Others() int {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return len(ids.others)
}

// EachWatch calls yield with the state of each watch of all identities.
func (ids *Identities) EachWatch(yield func(watcher.Source, watcher.State)) {
	sets := []*watcher.Set{ids.Own.Watches}
	ids.mu.Lock()
	for _, id := range ids.others {
		sets = append(sets, id.Watches)
	}
	ids.mu.Unlock()
	for _, set := range sets {
		for source, state := range set.States() {
			yield(source, state)
		}
	}
}
