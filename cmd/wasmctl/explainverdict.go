package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// lookLimit bounds the look at the API server for an object that the cache does
// not have.
const lookLimit = time.Second

// verdict finds out what an object does, and why it does not run.
type verdict struct {
	e      *admin.Explanation
	s      *session
	key    abi.Key
	now    time.Time
	stored *reflector.Object // nil where the cache does not have it
	object controller.Object
	err    error // that the controller's loop could not be asked
}

// fill takes over what the queue knows.
func (v *verdict) fill() {
	o := &v.object
	v.e.FailedRuns = o.FailedRuns
	if o.FailedRuns > 0 {
		v.e.FirstFailed = &o.FirstFailed
	}
	if o.Running {
		run := &admin.Running{Since: o.Since, Reasons: []string{}}
		for _, r := range v.s.history.Running() {
			if r.Key == v.key {
				run.ID, run.Operations = r.ID, v.s.opViews(r.Ops)
				run.Reasons = append(run.Reasons, r.Reason.String())
			}
		}
		v.e.Running = run
	}
	if o.State != scheduler.Absent {
		v.e.Pending = &admin.Pending{State: o.State.String(), At: o.At, Reasons: reasonTexts(&o.Msg), Low: o.Priority == scheduler.Low}
	}
}

// say adds a reason; the first that has a state gives the object's.
func (v *verdict) say(state, format string, args ...any) {
	if v.e.State == "" {
		v.e.State = state
	}
	v.e.Why = append(v.e.Why, fmt.Sprintf(format, args...))
}

// judge goes through what can keep an object from running, the most general
// first.
func (v *verdict) judge(ctx context.Context) {
	if v.object.Running {
		v.running()
	}
	v.process()
	v.watches()
	switch {
	case v.stored == nil:
		v.missing(ctx)
	case paused(v.stored):
		v.say("paused", "the object has the annotation %s: remove it, or set it to false", applier.PausedAnnotation)
	}
	v.hot()
	v.pending()
	v.last()
	v.filtered()
	if v.e.State == "" {
		v.say("idle", "nothing asks for it: it runs when it changes, or something that it depends on")
	}
}

func (v *verdict) running() {
	if v.e.Running.ID == "" {
		v.say("running", "it has been running for %s, and no guest has been called: it waits for a free instance, or for the cache to have what its last run wrote", age(v.now, v.object.Since))
		return
	}
	v.say("running", "it has been running for %s (%s); a run may take %v", age(v.now, v.object.Since), v.e.Running.ID, v.s.module.Limits().Timeout)
}

// process says what holds up the whole controller.
func (v *verdict) process() {
	if v.err != nil {
		v.say("not running", "the controller does not run: %v", v.err)
	}
	if v.s.controller.Stats().Paused {
		v.say("paused", "the controller is paused: wasmctl resume %s", v.s.name)
	}
	if v.s.elector != nil && !isOpen(v.s.elector.Gate().Open()) {
		v.say("standing by", "another replica leads: this one reconciles once it has the lease")
	}
}

// watches says which watch keeps events from coming.
func (v *verdict) watches() {
	for i, w := range v.s.controller.Stats().Watches {
		if w.State.Phase == watcher.Ready {
			continue
		}
		state := ""
		if i == 0 || !v.s.ready() {
			state = "watch " + w.State.Phase.String()
		}
		text := fmt.Sprintf("the watch of %s is %s", w.Source, w.State.Phase)
		if w.State.Message != "" {
			text += ": " + w.State.Message
		}
		if !v.s.ready() {
			text += "; no reconcile starts before all watches have synced"
		}
		if state == "" {
			v.e.Why = append(v.e.Why, text)
			continue
		}
		v.say(state, "%s", text)
	}
}

// ready reports whether all watches have synced once, so that reconciles start.
func (s *session) ready() bool { return len(s.controller.Unsynced()) == 0 }

func paused(o *reflector.Object) bool {
	value, _ := o.Annotation(applier.PausedAnnotation)
	return applier.Paused(value)
}

// missing says why the cache does not have the object.
func (v *verdict) missing(ctx context.Context) {
	w := v.s.kind.watch
	if len(w.Namespaces) > 0 && !slices.Contains(w.Namespaces, v.key.Namespace) {
		v.say("not watched", "namespace %s is not watched, only %s", v.key.Namespace, strings.Join(w.Namespaces, ", "))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	var client dynamic.ResourceInterface = v.s.dynamic.Resource(v.s.kind.GVR())
	if v.s.kind.Namespaced {
		client = v.s.dynamic.Resource(v.s.kind.GVR()).Namespace(v.key.Namespace)
	}
	o, err := client.Get(ctx, v.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		v.say("absent", "the API server has no %s %s", v.s.kind.Name(), v.key)
		return
	case err != nil:
		v.say("not cached", "the cache does not have it, and the API server cannot be asked: %v", err)
		return
	}
	if selector, err := labels.Parse(w.LabelSelector); err == nil && !selector.Matches(labels.Set(o.GetLabels())) {
		v.say("not selected", "its labels (%s) do not match the selector %s", labels.Set(o.GetLabels()), w.LabelSelector)
		return
	}
	if w.FieldSelector != "" {
		v.say("not selected", "the API server has it, and the watch has not: it does not match the field selector %s, or the watch is late", w.FieldSelector)
		return
	}
	v.say("not cached", "the API server has it, and the watch has not told of it yet")
}

// hot says that the object is held, or left alone.
func (v *verdict) hot() {
	if q := v.object.Quarantine; q != nil {
		v.say("quarantined", "it has been quarantined for %v, after %d runs in a row that ended in a %s: it is tried again in %v, and at once when it or the module changes, or with wasmctl trigger; the last error: %s",
			v.now.Sub(q.Since).Round(time.Second), q.Runs, q.Kind, q.Until.Sub(v.now).Round(time.Second), v.s.secrets.Text(q.Text))
	}
	if v.object.Hold > 0 {
		v.say("", "it is in a hot loop: its runs keep triggering it, so it is held for %v after each", v.object.Hold)
	}
}

// pending says what the next run waits for.
func (v *verdict) pending() {
	o := &v.object
	in := o.At.Sub(v.now).Round(10 * time.Millisecond)
	why := strings.Join(reasonTexts(&o.Msg), ", ")
	switch o.State {
	case scheduler.Absent:
	case scheduler.Waiting:
		v.say("waiting", "it runs again in %v (%s)", in, why)
	case scheduler.Debounced:
		v.say("debounced", "it runs in %v, once nothing has asked for it for %v (%s)", in, v.s.opts.debounce, why)
	case scheduler.Held:
		v.say("held", "it may run again in %v (%s)", in, why)
	case scheduler.Blocked:
		v.say("running", "it runs once more when this run is over (%s)", why)
	case scheduler.Ready:
		v.waitsForTurn(why)
	}
}

func (v *verdict) waitsForTurn(why string) {
	stats := v.s.controller.Stats()
	v.say("ready", "it has been due for %s (%s): %d of %d workers are busy, %d objects are due",
		age(v.now, v.object.At), why, stats.Running, v.s.module.Concurrency(), stats.Ready)
	for i, r := range v.s.history.Running() {
		if i == 0 && v.now.Sub(r.Since) > time.Second {
			v.e.Why = append(v.e.Why, fmt.Sprintf("%s has been running for %s", r.Key, age(v.now, r.Since)))
		}
	}
}

// last says what the last run left behind.
func (v *verdict) last() {
	if len(v.e.Runs) == 0 {
		if v.stored != nil && v.object.State == scheduler.Absent && !v.object.Running {
			v.say("", "no run of it is known: it has not run, or that is too long ago for the history (--history)")
		}
		return
	}
	switch r := &v.e.Runs[0]; {
	case r.Result == "failed" && v.object.State == scheduler.Absent && !v.object.Running:
		v.say("failed", "its last run failed, and waits for a change: %s", firstLine(r.Error))
	case r.Result == "failed":
		v.e.Why = append(v.e.Why, fmt.Sprintf("the last %d runs failed: %s", max(1, v.e.FailedRuns), firstLine(r.Error)))
	}
}

// filtered says what predicates have hidden.
func (v *verdict) filtered() {
	if h := v.e.Hidden; h != nil {
		v.say("idle", "%s since the last run had been hidden by predicates, the last %s ago: no change of %s", plural(int(min(h.Count, math.MaxInt32)), "event"), age(v.now, h.Last), h.Unchanged)
	}
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}
