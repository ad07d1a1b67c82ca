package plan

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// ErrNoCluster says how to name a cluster.
var ErrNoCluster = errors.New(`no cluster is configured: name a kubeconfig with --kubeconfig or $KUBECONFIG (~/.kube/config is read too), ` +
	`run inside a cluster, or use a local control plane with --dev`)

// Guess waits for nothing, and guesses what no cluster tells.
type Guess struct {
	Resolver *kinds.Resolver // nil where there is no cluster
	Guessed  []string        // what was guessed, for people
}

// Named implements Finder. It asks the cluster: what a flag names is too short to guess from.
func (f *Guess) Named(ctx context.Context, flag, name string) (kinds.Kind, error) {
	if f.Resolver == nil {
		return kinds.Kind{}, failure.Cluster.Wrap(fmt.Errorf("%s %s: looking up the kind: %w", flag, name, ErrNoCluster))
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	k, err := f.Resolver.Resolve(ctx, name)
	return k, kindError(err)
}

// Of implements Finder. It guesses the plural of a kind that no cluster has, and that it is namespaced.
func (f *Guess) Of(ctx context.Context, w *abi.Watch) (kinds.Kind, bool, error) {
	if f.Resolver != nil {
		ctx, cancel := context.WithTimeout(ctx, resolveLimit)
		defer cancel()
		k, err := f.Resolver.ResolveGVK(ctx, GVK(w))
		if err == nil {
			return k, false, nil
		}
		if !errors.Is(err, kinds.ErrUnknown) {
			f.Resolver = nil // there is no cluster: it is not asked again
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(GVK(w))
	f.Guessed = append(f.Guessed, fmt.Sprintf("the resource of %s is %s, and it is namespaced", GVK(w).GroupKind(), plural.Resource))
	return kinds.Kind{Group: w.Group, Version: w.Version, Kind: w.Kind, Resource: plural.Resource, Namespaced: true}, false, nil
}

// Namespaced implements Finder.
func (f *Guess) Namespaced(ctx context.Context, group, resource string) bool {
	if f.Resolver == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	k, err := f.Resolver.Resolve(ctx, resourceName(group, resource))
	return err != nil || k.Namespaced
}
