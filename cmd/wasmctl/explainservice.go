package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// defaultNamespace is that of an object of which nobody says one.
const defaultNamespace = "default"

// Explain implements admin.Explainer.
func (p *process) Explain(ctx context.Context, q admin.Question) ([]admin.Explanation, error) {
	if q.Object.Name == "" {
		return nil, errors.New("object: its name is missing")
	}
	asked, err := p.reconcilers(q)
	if err != nil {
		return nil, err
	}
	out := make([]admin.Explanation, 0, len(asked))
	for _, m := range asked {
		s, key := m.live(), q.Object
		if s == nil {
			out = append(out, m.explain(key))
			continue
		}
		switch {
		case !s.kind.Namespaced && q.Kind != "":
			key.Namespace = ""
		case s.kind.Namespaced && key.Namespace == "":
			key.Namespace = defaultNamespace
		}
		if err := s.checkKey(key); err != nil {
			return nil, err
		}
		out = append(out, s.explain(ctx, key))
	}
	return out, nil
}

// reconcilers returns the controllers that a question is about.
func (p *process) reconcilers(q admin.Question) ([]*member, error) {
	all := p.members.all()
	if q.Controller != "" {
		m, err := p.member(q.Controller)
		if err != nil {
			return nil, err
		}
		all = []*member{m}
	}
	if q.Kind == "" {
		return all, nil
	}
	var found []*member
	for _, m := range all {
		s := m.live()
		if s != nil && isNamed(s.kind.Kind, q.Kind) || s == nil && m.mayReconcile(q.Kind) {
			found = append(found, m)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, noReconciler(all, q.Kind)
}

// noReconciler says what else there is where no controller reconciles a kind.
func noReconciler(all []*member, kind string) error {
	var kinds []string
	for _, m := range all {
		switch s := m.live(); {
		case s == nil:
			kinds = append(kinds, "what "+m.name()+" is for, which does not run")
		case s.watchesKind(kind):
			return fmt.Errorf("%s: controller %s watches them for its %s, and reconciles none: explain one of those", kind, s.name, s.kind.Name())
		default:
			kinds = append(kinds, s.kind.Name())
		}
	}
	slices.Sort(kinds)
	return fmt.Errorf("%s: nothing here reconciles them; what is reconciled: %s", kind, strings.Join(slices.Compact(kinds), ", "))
}

// member returns the controller of this name, whether or not it runs.
func (p *process) member(name string) (*member, error) {
	for _, m := range p.members.all() {
		if m.name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown)
}

// mayReconcile reports whether a controller that does not run waits for a kind,
// as far as its flags and what it waits for say.
func (m *member) mayReconcile(kind string) bool {
	name, _, _ := strings.Cut(strings.ToLower(kind), ".")
	_, message, _ := m.state()
	return strings.Contains(strings.ToLower(m.opts.forKind), name) || strings.Contains(strings.ToLower(message), name)
}

// explain says why a controller does not run.
func (m *member) explain(key abi.Key) admin.Explanation {
	phase, message, _ := m.state()
	next := map[string]string{
		phaseWaiting: "it goes on by itself once the cluster has what it waits for: a CustomResourceDefinition is to be installed, or the API server to answer",
		phaseFailed:  "it is tried again by itself, within a minute",
	}[phase]
	return admin.Explanation{
		Controller: m.name(), Kind: m.opts.forKind, Object: key.String(), State: "controller " + phase, Runs: []admin.Run{},
		Why: slices.DeleteFunc([]string{strings.TrimSuffix("the controller is "+phase+": "+message, ": "), next}, func(s string) bool { return s == "" }),
	}
}

// watchesKind reports whether the controller watches a kind beside its own.
func (s *session) watchesKind(name string) bool {
	for _, w := range s.controller.Stats().Watches[1:] {
		resource, _, _ := strings.Cut(w.Source.Resource.GroupResource().String(), "/")
		if strings.EqualFold(resource, name) || strings.EqualFold(w.Source.Resource.Resource, name) ||
			strings.EqualFold(strings.TrimSuffix(w.Source.Resource.Resource, "s"), name) {
			return true
		}
	}
	return false
}

// isNamed reports whether a kind is meant by a name, in the forms that kubectl
// takes.
func isNamed(k kubeapi.Kind, name string) bool {
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

// explain says what the controller knows of an object.
func (s *session) explain(ctx context.Context, key abi.Key) admin.Explanation {
	now := time.Now()
	e := admin.Explanation{Controller: s.name, Kind: s.kind.Name(), Object: key.String(), Runs: []admin.Run{}}
	runs := s.history.Runs(key)
	for i := range runs {
		e.Runs = append(e.Runs, s.runView(&runs[i]))
	}
	if h := s.history.Hidden(key); h.Count > 0 {
		e.Hidden = &admin.Hidden{Count: h.Count, Last: h.Last, Unchanged: h.Unchanged}
	}
	e.MissingRights = s.missingRights()
	v := verdict{e: &e, s: s, key: key, now: now}
	v.stored = s.controller.Stored(key)
	if o := v.stored; o != nil {
		e.Cached = &admin.Cached{UID: o.UID(), ResourceVersion: o.ResourceVersion(), Generation: o.Generation(), Deleting: o.Deleting()}
	}
	v.object, v.err = s.controller.Object(ctx, key)
	v.fill()
	v.judge(ctx)
	return e
}
