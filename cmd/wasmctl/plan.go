package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// plan is what a manifest means under the flags, beside the kind that is
// reconciled: what else is watched, and what the module may do.
type plan struct {
	manifest *abi.Manifest
	related  []watched // those that it owns or watches
	late     []watched // optional ones that the API server does not have yet
	policy   *kubeapi.Policy
	rights   []abi.Capability // what the module would need to do all that it wants
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

// resolveKind finds the kind to reconcile. Flags win over the manifest.
func (s *session) resolveKind(ctx context.Context, m *abi.Manifest) (k watched, err error) {
	switch {
	case s.opts.forKind != "":
		k.Kind, err = s.resolver.Wait(ctx, s.opts.forKind, s.sayWaiting)
	case m.For != nil:
		k.Kind, err = s.resolver.WaitGVK(ctx, gvk(m.For), s.sayWaiting)
	default:
		return k, withCode(exitUsage, errors.New("--for is needed: the module's manifest does not say what kind it is for"))
	}
	if err != nil {
		return k, kindError(err)
	}
	k.watch = s.effectiveWatch(m)
	if len(k.watch.Namespaces) > 0 && !k.Namespaced {
		return k, withCode(exitUsage, fmt.Errorf("--namespace %s: %s is cluster-scoped; leave the namespace out", k.watch.Namespaces[0], k.Name()))
	}
	if s.opts.rights.grantFile == "" {
		return k, nil // grantTo decides on all at once
	}
	rules, all, err := s.grantedRules(ctx)
	if err != nil {
		return k, err
	}
	return s.narrow(k, rules, all)
}

// planFor finds the kinds that a manifest owns and watches, beside s.kind.
func (s *session) planFor(ctx context.Context, m *abi.Manifest) (*plan, error) {
	p := &plan{manifest: m}
	if err := s.resolveRelated(ctx, p); err != nil {
		return nil, err
	}
	if err := s.grantTo(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

func gvk(w *abi.Watch) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// resolveRelated finds the kinds that are owned and watched.
func (s *session) resolveRelated(ctx context.Context, p *plan) error {
	for _, name := range s.opts.owns {
		k, err := s.resolver.Wait(ctx, name, s.sayWaiting)
		if err != nil {
			return kindError(err)
		}
		p.related = append(p.related, s.placed(watched{k, abi.Watch{Map: "owner"}, true}))
	}
	if len(s.opts.owns) == 0 {
		for _, w := range p.manifest.Owns {
			w.Map = "owner"
			if err := s.resolveWatch(ctx, p, watched{watch: w, owned: true}); err != nil {
				return err
			}
		}
	}
	for _, w := range p.manifest.Watches {
		if err := s.resolveWatch(ctx, p, watched{watch: w}); err != nil {
			return err
		}
	}
	return nil
}

// resolveWatch finds the kind of one watch of the manifest. One that is
// optional is not waited for: see watchLate.
func (s *session) resolveWatch(ctx context.Context, p *plan, w watched) (err error) {
	kind := gvk(&w.watch)
	if w.watch.Optional {
		w.Kind, err = s.resolver.ResolveGVK(ctx, kind)
		if errors.Is(err, kubeapi.ErrUnknownKind) {
			p.late = append(p.late, w)
			return nil
		}
	}
	if !w.watch.Optional || err != nil {
		if w.Kind, err = s.resolver.WaitGVK(ctx, kind, s.sayWaiting); err != nil {
			return kindError(err)
		}
	}
	p.related = append(p.related, s.placed(w))
	return nil
}

// placed says in which namespaces a related kind is watched.
func (s *session) placed(k watched) watched {
	if k.watch.Map == "owner" {
		k.watch.Namespaces = s.ownedNamespaces(k.Kind, k.watch)
	}
	if !k.Namespaced {
		k.watch.Namespaces = nil
	}
	return k
}

// effectiveWatch is the manifest's watch of the kind with the flags over it.
func (s *session) effectiveWatch(m *abi.Manifest) abi.Watch {
	var w abi.Watch
	if m.For != nil {
		w = *m.For
	}
	o := s.opts
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

// ownedNamespaces returns where an owned kind is watched: where its owners are,
// or, if they have no namespace or are in all, where the manifest says.
func (s *session) ownedNamespaces(k kubeapi.Kind, w abi.Watch) []string {
	switch ns := s.kind.watch.Namespaces; {
	case !k.Namespaced:
		return nil
	case len(ns) == 0 && !s.opts.allNamespaces:
		return w.Namespaces
	default:
		return ns
	}
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
