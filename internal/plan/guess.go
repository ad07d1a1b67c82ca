// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// ErrNoCluster explains how to name a cluster.
var ErrNoCluster = errors.New(`no cluster is configured: name a kubeconfig with --kubeconfig or $KUBECONFIG (~/.kube/config is read too), ` +
	`or run inside a cluster`)

// Guess is a Finder that does not wait, and guesses properties of kinds that no cluster can
// confirm.
type Guess struct {
	Resolver *kinds.Resolver // nil if there is no cluster
	Guessed  []string        // the guesses, for people
}

// Named implements Finder. It asks the cluster. Without one, only a name with version and group is enough to
// guess from.
func (f *Guess) Named(ctx context.Context, flag, name string) (kinds.Kind, error) {
	if f.Resolver == nil {
		gvk, ok := kinds.ParseGVK(name)
		if !ok {
			return kinds.Kind{}, failure.Usage.Wrap(fmt.Errorf("%s %s: only the cluster knows the kind of this name: write it as apps/v1/Deployment, or: %w", flag, name, ErrNoCluster))
		}
		k, _, err := f.Of(ctx, &abi.Watch{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
		return k, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	k, err := f.Resolver.Resolve(ctx, name)
	return k, kindError(err)
}

// Of implements Finder. For a kind that the cluster lacks, it guesses the plural, and that
// it is namespaced.
func (f *Guess) Of(ctx context.Context, w *abi.Watch) (kinds.Kind, bool, error) {
	if f.Resolver != nil {
		ctx, cancel := context.WithTimeout(ctx, resolveLimit)
		defer cancel()
		k, err := f.Resolver.ResolveGVK(ctx, GVK(w))
		if err == nil {
			return k, false, nil
		}
		if !errors.Is(err, kinds.ErrUnknown) {
			f.Resolver = nil // there is no cluster: do not ask again
		}
	}
	resource := kinds.Plural(w.Kind)
	guessed := fmt.Sprintf("the resource of %s is %s, and it is namespaced", GVK(w).GroupKind(), resource)
	if !slices.Contains(f.Guessed, guessed) {
		f.Guessed = append(f.Guessed, guessed)
	}
	return kinds.Kind{Group: w.Group, Version: w.Version, Kind: w.Kind, Resource: resource, Namespaced: true}, false, nil
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
