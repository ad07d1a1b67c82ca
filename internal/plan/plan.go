// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Plan is the result of applying the options to a manifest: the kinds to watch in addition
// to the reconciled one, and the rights of the module.
type Plan struct {
	Manifest *abi.Manifest
	Related  []Watched // the kinds that the module owns or watches
	Pending  []Watched // optional kinds that the API server does not have yet
	Policy   *kubeapi.Policy
	Rights   []abi.Capability // the rights that the module needs for all that it requests
	Granted  []abi.Capability // of its capabilities
	Refused  []abi.Capability // capabilities, and rights of webhooks, that are not granted
	// Webhooks and Conversions are those that are granted, and Unserved has the others.
	Webhooks    []Webhook
	Conversions []abi.Conversions
	Unserved    []Unserved

	asks  []abi.Capability // its capabilities under the options
	hooks []webhook        // all of the manifest
}

// SameInputs reports whether runs under both plans have the same input: the same watches
// that trigger them, and the same owned kinds.
func (p *Plan) SameInputs(other *Plan) bool { return slices.Equal(p.inputs(), other.inputs()) }

func (p *Plan) inputs() []string {
	var ids []string
	for _, k := range slices.Concat(p.Related, p.Pending) {
		ids = append(ids, k.ID())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Watched is a kind and its watch according to the manifest and the options.
type Watched struct {
	kinds.Kind

	Watch abi.Watch
	Owned bool
}

// ID identifies a watch: two watches with the same ID are the same.
func (k Watched) ID() string {
	b, err := json.Marshal(struct {
		Resource schema.GroupVersionResource
		Watch    abi.Watch
		Owned    bool
	}{k.GVR(), k.Watch, k.Owned})
	if err != nil {
		panic("BUG: watch: " + err.Error()) // only strings and booleans
	}
	return string(b)
}

// reconciled finds the kind to reconcile. Options take precedence over the manifest.
func (o *Options) reconciled(ctx context.Context, kinds Finder, m *abi.Manifest) (k Watched, err error) {
	switch {
	case o.For != nil:
		k.Kind, err = kinds.Named(ctx, "for", o.For.String())
	case m.For != nil:
		w := *m.For
		w.Optional = false // the controller cannot run without it
		k.Kind, _, err = kinds.Of(ctx, &w)
	default:
		return k, failure.Usage.Wrap(errors.New("the kind to reconcile (for) is needed: the module's manifest does not name one"))
	}
	if err != nil {
		return k, err
	}
	k.Watch = o.effectiveWatch(m)
	if k.Namespaced {
		return k, nil
	}
	if len(o.Namespaces) > 0 && !o.AllNamespaces {
		return k, failure.Usage.Wrap(fmt.Errorf("namespaces %s: %s is cluster-scoped; omit the namespace", o.Namespaces[0], k.Name()))
	}
	k.Watch.Namespaces = nil // a module need not know the scope of its kind
	return k, nil
}

// plan returns the plan of a manifest without any grants.
func (o *Options) plan(ctx context.Context, kinds Finder, of Watched, m *abi.Manifest) (*Plan, error) {
	p := &Plan{Manifest: m, asks: o.asks(ctx, kinds, m)}
	var err error
	if p.hooks, err = o.webhooks(ctx, kinds, of, m); err != nil {
		return nil, err
	}
	for _, name := range v1alpha1.Kinds(o.Owns) {
		k, err := kinds.Named(ctx, "owns", name)
		if err != nil {
			return nil, err
		}
		p.Related = append(p.Related, o.Placed(of, Watched{k, abi.Watch{Map: abi.MapOwner}, true}))
	}
	var list []Watched
	for _, w := range m.Owns {
		if w.Map = abi.MapOwner; len(o.Owns) == 0 {
			list = append(list, Watched{Watch: w, Owned: true})
		}
	}
	for _, w := range m.Watches {
		list = append(list, Watched{Watch: w})
	}
	for _, k := range list {
		var pending bool
		switch k.Kind, pending, err = kinds.Of(ctx, &k.Watch); {
		case err != nil:
			return nil, err
		case pending:
			p.Pending = append(p.Pending, k)
		default:
			p.Related = append(p.Related, o.Placed(of, k))
		}
	}
	return p, nil
}

// asks returns the capabilities of a manifest. Those without namespaces are limited to the
// namespaces of the options: naming namespaces does not mean accepting more.
func (o *Options) asks(ctx context.Context, kinds Finder, m *abi.Manifest) []abi.Capability {
	if len(o.Namespaces) == 0 {
		return m.Capabilities
	}
	out := slices.Clone(m.Capabilities)
	for i := range out {
		if c := &out[i]; len(c.Namespaces) == 0 && kinds.Namespaced(ctx, c.Group, c.Resource) {
			c.Namespaces = slices.Clone(o.Namespaces)
		}
	}
	return out
}

// Placed sets the namespaces in which a related kind is watched.
func (o *Options) Placed(of, k Watched) Watched {
	switch ns := of.Watch.Namespaces; {
	case !k.Namespaced:
		k.Watch.Namespaces = nil
	case k.Watch.Map == abi.MapOwner && (len(ns) > 0 || o.AllNamespaces): // the namespaces of the owners
		k.Watch.Namespaces = ns
	case len(k.Watch.Namespaces) == 0:
		k.Watch.Namespaces = o.Namespaces
	}
	return k
}

// effectiveWatch returns the manifest's watch of the reconciled kind, overridden by the
// options.
func (o *Options) effectiveWatch(m *abi.Manifest) abi.Watch {
	var w abi.Watch
	if m.For != nil {
		w = *m.For
	}
	if len(o.Namespaces) > 0 {
		w.Namespaces = o.Namespaces
	}
	if o.AllNamespaces {
		w.Namespaces = nil
	}
	w.LabelSelector = cmp.Or(o.Selector.String(), w.LabelSelector)
	w.FieldSelector = cmp.Or(o.FieldSelector, w.FieldSelector)
	if len(o.Predicates) > 0 {
		w.Predicates = o.Predicates
	}
	return w
}
