package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// resolveLimit bounds how long a command waits for a cluster that it can do
// without.
const resolveLimit = 10 * time.Second

// finder finds the kinds that flags and manifests name.
type finder interface {
	// named finds the kind that a flag names.
	named(ctx context.Context, flag, name string) (kubeapi.Kind, error)
	// of finds the kind of a manifest's watch. Late says that the watch is optional,
	// and its kind not there yet.
	of(ctx context.Context, w *abi.Watch) (k kubeapi.Kind, late bool, err error)
	// namespaced reports whether the objects of a resource have a namespace; what is
	// not known is taken to.
	namespaced(ctx context.Context, group, resource string) bool
}

func gvk(w *abi.Watch) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// patient waits for the cluster and for kinds that may come: for a module that
// is to run.
type patient struct {
	resolver *kubeapi.Resolver
	known    *knownKinds        // found before
	waits    func(reason error) // told what it waits for
}

func (s *session) kinds() finder { return patient{s.resolver, &s.found, s.sayWaiting} }

func (f patient) named(ctx context.Context, _, name string) (kubeapi.Kind, error) {
	k, err := f.known.get(name, func() (kubeapi.Kind, error) { return f.resolver.Wait(ctx, name, f.waits) })
	return k, kindError(err)
}

// of does not wait for an optional kind, nor for an API server that is to say
// whether it is there: see watchLate.
func (f patient) of(ctx context.Context, w *abi.Watch) (k kubeapi.Kind, late bool, err error) {
	find := f.resolver.ResolveGVK
	if !w.Optional {
		find = func(ctx context.Context, gvk schema.GroupVersionKind) (kubeapi.Kind, error) {
			return f.resolver.WaitGVK(ctx, gvk, f.waits)
		}
	}
	k, err = f.known.get("manifest: "+gvk(w).String(), func() (kubeapi.Kind, error) { return find(ctx, gvk(w)) })
	if w.Optional && (errors.Is(err, kubeapi.ErrUnknownKind) || errors.Is(err, kubeapi.ErrUnavailable)) {
		return k, true, nil
	}
	return k, false, kindError(err)
}

func (f patient) namespaced(ctx context.Context, group, resource string) bool {
	name := resourceName(group, resource)
	k, err := f.known.get("resource: "+name, func() (kubeapi.Kind, error) { return f.resolver.Resolve(ctx, name) })
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

// guessing waits for nothing: what no cluster tells it guesses.
type guessing struct {
	resolver *kubeapi.Resolver // nil where there is no cluster
	guessed  []string          // what was, for people
}

// newGuessing asks the cluster of the flags, if there is one.
func newGuessing(o *processOptions) *guessing {
	config, err := loadConfig(o.kubeconfig, o.context)
	if err != nil {
		return &guessing{}
	}
	client, err := kubeapi.NewClient(config)
	if err != nil {
		return &guessing{}
	}
	return &guessing{resolver: kubeapi.NewResolver(client, slog.New(slog.DiscardHandler))}
}

// named asks the cluster: what a flag names is too short to guess from.
func (f *guessing) named(ctx context.Context, flag, name string) (kubeapi.Kind, error) {
	if f.resolver == nil {
		return kubeapi.Kind{}, withCode(exitCluster, fmt.Errorf("%s %s: a kind of a flag is looked up in a cluster: %w", flag, name, errNoCluster))
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	k, err := f.resolver.Resolve(ctx, name)
	return k, kindError(err)
}

// of guesses the plural of a kind that no cluster has, and that it is namespaced.
func (f *guessing) of(ctx context.Context, w *abi.Watch) (kubeapi.Kind, bool, error) {
	if f.resolver != nil {
		ctx, cancel := context.WithTimeout(ctx, resolveLimit)
		defer cancel()
		k, err := f.resolver.ResolveGVK(ctx, gvk(w))
		if err == nil {
			return k, false, nil
		}
		if !errors.Is(err, kubeapi.ErrUnknownKind) {
			f.resolver = nil // there is no cluster: it is not asked again
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk(w))
	f.guessed = append(f.guessed, fmt.Sprintf("the resource of %s is %s, and it is namespaced", gvk(w).GroupKind(), plural.Resource))
	return kubeapi.Kind{Group: w.Group, Version: w.Version, Kind: w.Kind, Resource: plural.Resource, Namespaced: true}, false, nil
}

func (f *guessing) namespaced(ctx context.Context, group, resource string) bool {
	if f.resolver == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	k, err := f.resolver.Resolve(ctx, resourceName(group, resource))
	return err != nil || k.Namespaced
}

// tell says what was guessed.
func (f *guessing) tell(s streams) {
	for _, guessed := range f.guessed {
		_, _ = fmt.Fprintf(s.err, "wasmctl: guessed, since no cluster that has the kind was asked: %s\n", guessed) // advice
	}
}

// kindError gives errors of the resolver their exit code.
func kindError(err error) error {
	switch {
	case errors.Is(err, kubeapi.ErrUnknownKind), errors.Is(err, kubeapi.ErrAmbiguousKind):
		return withCode(exitKind, err)
	case errors.Is(err, kubeapi.ErrBadKindName):
		return withCode(exitUsage, err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return withCode(exitDenied, fmt.Errorf("%w; check the credentials of the kubeconfig: kubectl auth whoami", err))
	}
	return err
}
