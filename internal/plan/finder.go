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

// resolveLimit bounds how long a command waits for a cluster that it can do
// without.
const resolveLimit = 10 * time.Second

// Finder finds the kinds that flags and manifests name.
type Finder interface {
	// Named finds the kind that a flag names.
	Named(ctx context.Context, flag, name string) (kinds.Kind, error)
	// Of finds the kind of a manifest's watch. Late says that the watch is optional,
	// and its kind not there yet.
	Of(ctx context.Context, w *abi.Watch) (k kinds.Kind, pending bool, err error)
	// Namespaced reports whether the objects of a resource have a namespace; what is
	// not known is taken to.
	Namespaced(ctx context.Context, group, resource string) bool
}

// GVK is the kind that a watch names.
func GVK(w *abi.Watch) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// Patient waits for the cluster and for kinds that may come: for a module that
// is to run. It remembers the kinds that it has found and does not ask for them
// again: a module is rolled back also while the API server is away.
type Patient struct {
	Resolver *kinds.Resolver
	Waits    func(reason error) // told what it waits for

	mu    sync.Mutex
	known map[string]kinds.Kind // by what names them; guarded by mu
}

// Named implements Finder.
func (f *Patient) Named(ctx context.Context, _, name string) (kinds.Kind, error) {
	k, err := f.get(name, func() (kinds.Kind, error) { return f.Resolver.Wait(ctx, name, f.Waits) })
	return k, kindError(err)
}

// Of implements Finder. It does not wait for an optional kind, nor for an API
// server that is to say whether it is there.
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

// resourceName names a resource as Resolver.Resolve reads it, with no other that
// it could mean.
func resourceName(group, resource string) string {
	if group == "" {
		return "v1/" + resource
	}
	return resource + "." + group
}

// kindError gives errors of the resolver their exit code.
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

// get returns the kind that is known by a name, or finds and keeps it. No lock is
// held meanwhile.
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
