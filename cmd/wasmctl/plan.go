package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// plan is what a manifest means under the flags, beside the kind that is
// reconciled: what else is watched, and what the module may do.
type plan struct {
	manifest *abi.Manifest
	asks     []abi.Capability // its capabilities under the flags
	related  []watched        // those that it owns or watches
	late     []watched        // optional ones that the API server does not have yet
	policy   *kubeapi.Policy
	rights   []abi.Capability // what the module would need to do all that it wants
	may      []abi.Capability // of its capabilities, what is granted
	beyond   []abi.Capability // capabilities that are not granted
}

// watched is a kind and what the manifest says of its watch, under the flags.
type watched struct {
	kubeapi.Kind

	watch abi.Watch
	owned bool
}

// id tells watches apart: two with the same id are one.
func (k watched) id() string {
	b, err := json.Marshal(struct {
		Resource schema.GroupVersionResource
		Watch    abi.Watch
		Owned    bool
	}{k.GVR(), k.watch, k.owned})
	if err != nil {
		panic("BUG: watch: " + err.Error()) // strings and flags
	}
	return string(b)
}

// resolveKind finds the kind to reconcile, and narrows its watch to where a
// grant's file lets it be watched.
func (s *session) resolveKind(ctx context.Context, m *abi.Manifest) (watched, error) {
	k, err := s.opts.reconciled(ctx, s.kinds(), m)
	if err != nil || s.opts.rights.grantFile == "" {
		return k, err // grantTo decides on all at once
	}
	g, err := s.granted(ctx)
	if err != nil {
		return k, err
	}
	return g.narrow(k)
}

// reconciled finds the kind to reconcile. Flags win over the manifest.
func (o *controllerOptions) reconciled(ctx context.Context, kinds finder, m *abi.Manifest) (k watched, err error) {
	switch {
	case o.forKind != "":
		k.Kind, err = kinds.named(ctx, "--for", o.forKind)
	case m.For != nil:
		w := *m.For
		w.Optional = false // there is nothing to do without it
		k.Kind, _, err = kinds.of(ctx, &w)
	default:
		return k, withCode(exitUsage, errors.New("--for is needed: the module's manifest does not say what kind it is for"))
	}
	if err != nil {
		return k, err
	}
	k.watch = o.effectiveWatch(m)
	if len(k.watch.Namespaces) > 0 && !k.Namespaced {
		return k, withCode(exitUsage, fmt.Errorf("--namespace %s: %s is cluster-scoped; leave the namespace out", k.watch.Namespaces[0], k.Name()))
	}
	return k, nil
}

// planFor finds the kinds that a manifest owns and watches, beside s.kind, and
// what the module may do.
func (s *session) planFor(ctx context.Context, m *abi.Manifest) (*plan, error) {
	p, err := s.opts.plan(ctx, s.kinds(), s.kind, m)
	if err != nil {
		return nil, err
	}
	return p, s.grantTo(ctx, p)
}

// plan says what a manifest means under the flags, beside the kind that is
// reconciled. Nothing is granted yet.
func (o *controllerOptions) plan(ctx context.Context, kinds finder, of watched, m *abi.Manifest) (*plan, error) {
	p := &plan{manifest: m, asks: o.asks(ctx, kinds, m)}
	for _, name := range o.owns {
		k, err := kinds.named(ctx, "--owns", name)
		if err != nil {
			return nil, err
		}
		p.related = append(p.related, o.placed(of, watched{k, abi.Watch{Map: abi.MapOwner}, true}))
	}
	var list []watched
	for _, w := range m.Owns {
		if w.Map = abi.MapOwner; len(o.owns) == 0 {
			list = append(list, watched{watch: w, owned: true})
		}
	}
	for _, w := range m.Watches {
		list = append(list, watched{watch: w})
	}
	for _, k := range list {
		var late bool
		var err error
		switch k.Kind, late, err = kinds.of(ctx, &k.watch); {
		case err != nil:
			return nil, err
		case late:
			p.late = append(p.late, k)
		default:
			p.related = append(p.related, o.placed(of, k))
		}
	}
	return p, nil
}

// asks are the capabilities of a manifest. Those that name no namespaces are
// about those of --namespace: who names these does not mean to accept more.
func (o *controllerOptions) asks(ctx context.Context, kinds finder, m *abi.Manifest) []abi.Capability {
	if len(o.namespaces) == 0 {
		return m.Capabilities
	}
	out := slices.Clone(m.Capabilities)
	for i := range out {
		if c := &out[i]; len(c.Namespaces) == 0 && kinds.namespaced(ctx, c.Group, c.Resource) {
			c.Namespaces = slices.Clone(o.namespaces)
		}
	}
	return out
}

// placed says in which namespaces a kind is watched that is related to another.
func (o *controllerOptions) placed(of, k watched) watched {
	switch ns := of.watch.Namespaces; {
	case !k.Namespaced:
		k.watch.Namespaces = nil
	case k.watch.Map == abi.MapOwner && (len(ns) > 0 || o.allNamespaces): // where the owners are
		k.watch.Namespaces = ns
	case len(k.watch.Namespaces) == 0:
		k.watch.Namespaces = o.namespaces
	}
	return k
}

// effectiveWatch is the manifest's watch of the kind with the flags over it.
func (o *controllerOptions) effectiveWatch(m *abi.Manifest) abi.Watch {
	var w abi.Watch
	if m.For != nil {
		w = *m.For
	}
	if len(o.namespaces) > 0 {
		w.Namespaces = o.namespaces
	}
	if o.allNamespaces {
		w.Namespaces = nil
	}
	if o.selector != "" {
		w.LabelSelector = o.selector
	}
	if o.fieldSelector != "" {
		w.FieldSelector = o.fieldSelector
	}
	if len(o.predicates) > 0 {
		w.Predicates = o.predicates
	}
	return w
}

func (s *session) sayWaiting(reason error) {
	next := "start the API server, or name another cluster; until then this tries again by itself"
	if errors.Is(reason, kubeapi.ErrUnknownKind) {
		next = "install its CustomResourceDefinition; until then this tries again by itself"
	}
	if s.waits != nil {
		s.waits(reason.Error())
	}
	s.log.Warn("waiting for the cluster", "reason", reason.Error(), "next", next, "controller", s.name)
}
