// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// resolveLimit bounds how long a command waits for a cluster that it can work without.
const resolveLimit = 10 * time.Second

// Finder finds the kinds that options and manifests name.
type Finder interface {
	// Named finds the kind that an option names.
	Named(ctx context.Context, flag, name string) (kinds.Kind, error)
	// Of finds the kind of a manifest's watch. pending reports that the watch is optional
	// and its kind does not exist yet.
	Of(ctx context.Context, w *abi.Watch) (k kinds.Kind, pending bool, err error)
	// Namespaced reports whether the objects of a resource have a namespace. An unknown
	// resource is assumed to have one.
	Namespaced(ctx context.Context, group, resource string) bool
}

// GVK returns the kind that a watch names.
func GVK(w *abi.Watch) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// Patient is a Finder for a module that is about to run: it waits for the cluster and for
// missing kinds. It caches the kinds that it has found, so that a module can be rolled back
// while the API server is unavailable.
type Patient struct {
	Resolver *kinds.Resolver
	Waits    func(reason error) // is called with the reason for waiting

	mu    sync.Mutex
	known map[string]kinds.Kind // by name; guarded by mu
}

// Named implements Finder.
func (f *Patient) Named(ctx context.Context, _, name string) (kinds.Kind, error) {
	k, err := f.get(name, func() (kinds.Kind, error) { return f.Resolver.Wait(ctx, name, f.Waits) })
	return k, kindError(err)
}

// Of implements Finder. It does not wait for an optional kind, nor for an API server that
// could tell whether the kind exists.
func (f *Patient) Of(ctx context.Context, w *abi.Watch) (k kinds.Kind, pending bool, err error) {
	find := f.Resolver.ResolveGVK
	if !w.Optional {
		find = func(ctx context.Context, gvk schema.GroupVersionKind) (kinds.Kind, error) {
			return f.Resolver.WaitGVK(ctx, gvk, f.Waits)
		}
	}
	k, err = f.get("manifest: "+GVK(w).String(), func() (kinds.Kind, error) { return find(ctx, GVK(w)) })
	if w.Optional && (errors.Is(err, kinds.ErrUnknown) || errors.Is(err, kinds.ErrUnavailable)) {
		return k, true, nil
	}
	return k, false, kindError(err)
}

// Namespaced implements Finder.
func (f *Patient) Namespaced(ctx context.Context, group, resource string) bool {
	name := resourceName(group, resource)
	k, err := f.get("resource: "+name, func() (kinds.Kind, error) { return f.Resolver.Resolve(ctx, name) })
	return err != nil || k.Namespaced
}

// resourceName returns an unambiguous name of a resource for Resolver.Resolve.
func resourceName(group, resource string) string {
	if group == "" {
		return "v1/" + resource
	}
	return resource + "." + group
}

// kindError assigns an exit class to errors of the resolver.
func kindError(err error) error {
	switch {
	case errors.Is(err, kinds.ErrUnknown), errors.Is(err, kinds.ErrAmbiguous):
		return failure.Kind.Wrap(err)
	case errors.Is(err, kinds.ErrBadName):
		return failure.Usage.Wrap(err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return failure.Denied.Wrap(fmt.Errorf("%w; check the credentials of the kubeconfig: kubectl auth whoami", err))
	}
	return err
}

// get returns the cached kind of a name, or finds and caches it. It holds no lock while it
// finds the kind.
func (f *Patient) get(name string, find func() (kinds.Kind, error)) (kinds.Kind, error) {
	f.mu.Lock()
	kind, ok := f.known[name]
	f.mu.Unlock()
	if ok {
		return kind, nil
	}
	kind, err := find()
	if err != nil {
		return kind, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[string]kinds.Kind{}
	}
	f.known[name] = kind
	return kind, nil
}
