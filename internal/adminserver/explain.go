// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// Explain implements admin.Service.
func (s Service) Explain(ctx context.Context, q admin.Question) ([]admin.Explanation, error) {
	if q.Object.Name == "" {
		return nil, failure.Usage.Wrap(errors.New("object: name is missing"))
	}
	asked, err := s.reconcilers(q)
	if err != nil {
		return nil, err
	}
	out := make([]admin.Explanation, 0, len(asked))
	for _, c := range asked {
		e, key := c.Engine, q.Object
		if e == nil {
			out = append(out, explainStopped(c, key))
			continue
		}
		if !e.Kind().Namespaced && q.Kind != "" {
			key.Namespace = ""
		}
		key = withNamespace(e, key)
		if err := e.CheckKey(key); err != nil {
			return nil, err
		}
		out = append(out, s.explain(ctx, e, key))
	}
	slices.SortStableFunc(out, func(a, b admin.Explanation) int {
		return cmp.Compare(rank(&a), rank(&b))
	})
	return out, nil
}

// rank orders explanations: those of controllers that know the object come first.
func rank(e *admin.Explanation) int {
	if e.Known() {
		return 0
	}
	return 1
}

// withNamespace adds the default namespace if the kind is namespaced and the key has none.
func withNamespace(e *engine.Controller, key abi.Key) abi.Key {
	if e.Kind().Namespaced && key.Namespace == "" {
		key.Namespace = metav1.NamespaceDefault
	}
	return key
}

// reconcilers returns the controllers that a question is about.
func (s Service) reconcilers(q admin.Question) ([]Controller, error) {
	all := s.Controllers()
	if q.Controller != "" {
		c, err := s.find(q.Controller)
		if err != nil {
			return nil, err
		}
		all = []Controller{*c}
	}
	if q.Kind == "" {
		return all, nil
	}
	var found []Controller
	for _, c := range all {
		e := c.Engine
		if e != nil && isNamed(e.Kind().Kind, q.Kind) || e == nil && mayReconcile(c, q.Kind) {
			found = append(found, c)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, failure.Usage.Wrap(noReconciler(all, q.Kind))
}

// noReconciler returns the error for a kind that no controller reconciles. It lists the
// alternatives.
func noReconciler(all []Controller, kind string) error {
	var kinds []string
	for _, c := range all {
		switch e := c.Engine; {
		case e == nil:
			kinds = append(kinds, "the kind of "+c.Name+" (not running)")
		case watchesKind(e, kind):
			return fmt.Errorf("%s: controller %s watches this kind for its %s and does not reconcile it: explain one of those", kind, e.Name(), e.Kind().Name())
		default:
			kinds = append(kinds, e.Kind().Name())
		}
	}
	slices.Sort(kinds)
	return fmt.Errorf("%s: no controller reconciles this kind; reconciled kinds: %s; for NAMESPACE/NAME, name the controller first: CONTROLLER NAMESPACE/NAME", kind, strings.Join(slices.Compact(kinds), ", "))
}

// mayReconcile reports whether a controller that does not run may be waiting for a kind,
// judging by its options and its message.
func mayReconcile(c Controller, kind string) bool {
	name, _, _ := strings.Cut(strings.ToLower(kind), ".")
	return strings.Contains(strings.ToLower(c.For), name) || strings.Contains(strings.ToLower(c.Message), name)
}

// explainStopped explains why a controller does not run.
func explainStopped(c Controller, key abi.Key) admin.Explanation {
	next := map[string]string{
		admin.PhaseWaiting: "it continues once the CustomResourceDefinition is there and the API server answers",
		admin.PhaseFailed:  "it is retried within a minute",
	}[c.Phase]
	return admin.Explanation{
		Controller: c.Name, Kind: c.For, Object: key.String(), State: "controller " + c.Phase, Runs: []history.Run{},
		Why: slices.DeleteFunc([]string{strings.TrimSuffix("the controller is "+c.Phase+": "+c.Message, ": "), next}, func(s string) bool { return s == "" }),
	}
}

// watchesKind reports whether the controller watches a kind in addition to the reconciled
// one.
func watchesKind(e *engine.Controller, name string) bool {
	for _, w := range e.Runtime.Stats().Watches { // a replica without slots has no watches
		resource, _, _ := strings.Cut(w.Source.Resource.GroupResource().String(), "/")
		if strings.EqualFold(resource, name) || strings.EqualFold(w.Source.Resource.Resource, name) ||
			strings.EqualFold(strings.TrimSuffix(w.Source.Resource.Resource, "s"), name) {
			return true
		}
	}
	return false
}

// isNamed reports whether a name means the kind, in any form that kubectl accepts.
func isNamed(k kinds.Kind, name string) bool {
	var group string
	if parts := strings.Split(name, "/"); len(parts) > 1 { // group/version/Kind, or version/Kind
		if group = strings.Join(parts[:len(parts)-1], "/"); !strings.EqualFold(group, k.GVK().GroupVersion().String()) {
			return false
		}
		name, group = parts[len(parts)-1], ""
	} else if name, group, _ = strings.Cut(name, "."); strings.EqualFold(group, k.Version) {
		group = k.Group // kind.version
	}
	if version, rest, ok := strings.Cut(group, "."); ok && strings.EqualFold(version, k.Version) {
		group = rest // kind.version.group
	}
	if group != "" && !strings.EqualFold(group, k.Group) {
		return false
	}
	return slices.ContainsFunc(append([]string{k.Kind, k.Resource, k.Singular}, k.ShortNames...), func(n string) bool {
		return strings.EqualFold(n, name)
	})
}

// explain returns all that the controller knows about an object.
func (s Service) explain(ctx context.Context, c *engine.Controller, key abi.Key) admin.Explanation {
	t := c.Telemetry
	now := time.Now()
	e := admin.Explanation{Controller: c.Name(), Kind: c.Kind().Name(), Object: key.String(), Runs: t.Runs(key), Denials: t.Denials(key)}
	if h := t.History.Hidden(key); h.Count > 0 {
		e.Hidden = &h
	}
	e.MissingRights = deniedRights(c)
	v := verdict{e: &e, c: c, gate: s.Gate, view: s.view(), key: key, now: now}
	if s.Leader != nil {
		v.leader = s.Leader()
	}
	v.stored = c.Runtime.Stored(key)
	if o := v.stored; o != nil {
		e.Cached = &admin.Cached{UID: o.UID(), ResourceVersion: o.ResourceVersion(), Generation: o.Generation(), Deleting: o.Deleting()}
	}
	v.object, v.err = c.Runtime.Object(ctx, key)
	v.fill()
	v.judge(ctx)
	return e
}
