// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// problems has the errors of webhooks and conversions that cannot be registered, by webhook.Name or webhook.ConversionName.
type problems map[string]error

// err returns all of them.
func (p problems) err() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p)) {
		errs = append(errs, p[name])
	}
	return errors.Join(errs...)
}

// State is the state of a webhook or a conversion.
type State struct {
	// Since is when this process first saw that it is registered; zero if it is not.
	Since time.Time
	// Err is why it is not registered as the module has it; nil if there is no reason of its own.
	Err error
}

// States are the states of the webhooks and conversions of one controller, by webhook.Name and webhook.ConversionName.
type States map[string]State

// attempt is the result of the last attempt of a round.
type attempt struct {
	failed  problems
	general error             // not about particular webhooks
	states  map[string]States // by controller; replaced, never changed
}

// view is what other goroutines may see.
type view struct {
	problem, general error
	states           map[string]States
}

// Problem returns what could not be registered at the last attempt.
func (r *Registrar) Problem() error {
	if v := r.view.Load(); v != nil {
		return v.problem
	}
	return nil
}

// States returns the states of a controller's webhooks after the last attempt, and the problem that concerns all webhooks. It tells a tenant
// nothing about the webhooks of others.
func (r *Registrar) States(controller string) (States, error) {
	v := r.view.Load()
	if v == nil {
		return nil, nil
	}
	if apierrors.IsInvalid(v.general) {
		return v.states[controller], errors.New("the API server refuses the configuration: see the log of wasmctl")
	}
	return v.states[controller], v.general
}

// registered returns the names of what an object has of this group.
func (r *Registrar) registered(o *object, conversions map[string]conversion) (names []string) {
	for _, client := range r.cfg.clients(o.was) {
		path, _ := r.cfg.calls(client)
		if c := conversions[o.was.GetName()]; o.gvr == crds && c.path == path {
			names = append(names, c.name)
		} else if o.gvr != crds {
			names = append(names, webhook.Name(path))
		}
	}
	return names
}

// observe sets the states of the controllers.
func (r *Registrar) observe(sources []Source, registered []string, now time.Time) {
	found := map[string]bool{}
	for _, name := range registered {
		found[name] = true
	}
	states := map[string]States{}
	for i := range sources {
		s := &sources[i]
		before, of := r.last.states[s.Controller], States{}
		for _, name := range s.Routes.Names(s.Prefix) {
			state := State{Err: r.last.failed[name]}
			if conflict := s.conflict(name); conflict != "" {
				state.Err = errors.New(conflict)
			} else if found[name] {
				state.Since = cmp.Or(before[name].Since, now)
			}
			of[name] = state
		}
		states[s.Controller] = of
	}
	r.last.states = states
}
