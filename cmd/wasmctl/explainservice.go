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
	for _, s := range asked {
		key := q.Object
		switch {
		case !s.loaded():
		case !s.kind.Namespaced && q.Kind != "":
			key.Namespace = ""
		case s.kind.Namespaced && key.Namespace == "":
			key.Namespace = defaultNamespace
		default:
			if err := s.checkKey(key); err != nil {
				return nil, err
			}
		}
		out = append(out, s.explain(ctx, key))
	}
	return out, nil
}

// reconcilers returns the sessions that a question is about.
func (p *process) reconcilers(q admin.Question) ([]*session, error) {
	all := p.sessions
	if q.Controller != "" {
		s, err := p.session(q.Controller)
		if err != nil {
			return nil, err
		}
		all = []*session{s}
	}
	if q.Kind == "" {
		return all, nil
	}
	var found, watching []*session
	var kinds []string
	for _, s := range all {
		if !s.loaded() {
			continue
		}
		kinds = append(kinds, s.kind.Name())
		if isNamed(s.kind.Kind, q.Kind) {
			found = append(found, s)
		} else if s.watchesKind(q.Kind) {
			watching = append(watching, s)
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	switch {
	case len(found) > 0:
		return found, nil
	case len(watching) > 0:
		s := watching[0]
		return nil, fmt.Errorf("%s: controller %s watches them for its %s, and reconciles none: explain one of those", q.Kind, s.name, s.kind.Name())
	}
	return nil, fmt.Errorf("%s: nothing here reconciles them; what is reconciled: %s", q.Kind, strings.Join(kinds, ", "))
}

// loaded reports whether the session's module is loaded and its controller
// made.
func (s *session) loaded() bool { return s.controller != nil }

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
	if !s.loaded() {
		return admin.Explanation{Controller: s.name, Object: key.String(), State: "not started", Why: []string{"the controller has not started yet"}, Runs: []admin.Run{}}
	}
	now := time.Now()
	e := admin.Explanation{Controller: s.name, Kind: s.kind.Name(), Object: key.String(), Runs: []admin.Run{}}
	runs := s.history.Runs(key)
	for i := range runs {
		e.Runs = append(e.Runs, s.runView(&runs[i]))
	}
	if h := s.history.Hidden(key); h.Count > 0 {
		e.Hidden = &admin.Hidden{Count: h.Count, Last: h.Last, Unchanged: h.Unchanged}
	}
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
