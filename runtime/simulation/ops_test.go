// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

type opKind uint8

const (
	opSpec       opKind = iota // create a widget or zone, or change its spec
	opLabel                    // change a label of a widget or zone
	opTouch                    // change an irrelevant annotation
	opPause                    // pause or unpause an object
	opDelete                   // delete a widget or zone
	opReplace                  // delete it and create it again
	opConfig                   // create a config or change the objects that it names
	opConfigData               // change a config, but not the objects that it names
	opFlip                     // make a config name one object for a moment, and then another one
	opDeleteConfig
	opPart // create, tamper with or delete a part
	opGarbage
	opTrigger
	opPauseController
	opWatch // add a watch to a controller, or remove one
	opRestart
	opStart
	opActivate
	opDiscard // create a controller and do not run it
	opCompact
	opEndStreams
	opPhase // all requests for a resource fail for a while
)

// op is one step of a scenario.
type op struct {
	kind opKind
	wait time.Duration // before the step
	r    *rand.Rand
}

// weights are the relative frequencies of steps.
var weights = map[opKind]int{
	opSpec: 20, opLabel: 6, opTouch: 6, opPause: 4, opDelete: 8, opReplace: 4, opConfig: 14, opConfigData: 5, opFlip: 5, opDeleteConfig: 4, opPart: 8,
	opGarbage: 2, opTrigger: 4, opPauseController: 3, opWatch: 4, opRestart: 2, opDiscard: 1, opCompact: 3, opEndStreams: 5, opPhase: 4,
}

// deck contains each kind of op as often as its weight.
var deck = func() (d []opKind) {
	for _, kind := range slices.Sorted(maps.Keys(weights)) {
		for range weights[kind] {
			d = append(d, kind)
		}
	}
	return d
}()

// write describes the step.
func (p *plot) write(r *rand.Rand) {
	draw := func(kind opKind, wait time.Duration) op {
		return op{kind, wait, rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))}
	}
	for range r.IntN(10) {
		p.before = append(p.before, draw(pick(r, opSpec, opConfig, opPart), 0))
	}
	pace := pick(r, 0, 10*time.Millisecond, 300*time.Millisecond, 3*time.Second, 30*time.Second)
	for range 15 + r.IntN(35) {
		kind := deck[r.IntN(len(deck))]
		if p.mood == 0 && kind >= opCompact {
			continue
		}
		var wait time.Duration
		if chance(r, 0.7) {
			wait = time.Duration(r.ExpFloat64() * float64(pace))
		}
		p.ops = append(p.ops, draw(kind, wait))
	}
	for _, kind := range []opKind{opStart, opActivate} {
		i := r.IntN(len(p.ops) + 1)
		p.ops = slices.Insert(p.ops, i, draw(kind, upTo(r, 4*pace)))
	}
}

// play performs an op.
func (s *sim) play(o op) {
	r := o.r
	switch o.kind {
	case opSpec, opLabel, opTouch, opPause, opDelete, opReplace:
		s.playObject(o.kind, r)
	case opConfig, opConfigData:
		s.playConfig(o.kind, r)
	case opFlip:
		s.playFlip(r)
	case opDeleteConfig:
		s.remove(configs, s.key(r, configs))
	case opPart:
		s.playPart(r)
	case opGarbage:
		s.collectGarbage()
	case opCompact:
		s.logf("compaction")
		s.api.Compact()
	case opEndStreams:
		n, how := 1+r.IntN(3), memapi.End(r.IntN(int(memapi.Stalled)+1))
		s.logf("every %d. stream ends: %d", n, how)
		s.api.EndStreams(n, how)
	case opPhase:
		s.phases.begin(s, r)
	default:
		s.playController(o.kind, r)
	}
}

func (s *sim) playController(kind opKind, r *rand.Rand) {
	c := s.ctrls[r.IntN(len(s.ctrls))]
	switch kind { //nolint:exhaustive // the others are in play
	case opTrigger:
		c.trigger(r)
	case opPauseController:
		c.pause(chance(r, 0.6))
	case opWatch:
		c.toggleWatch(r)
	case opRestart:
		if c.isRunning() {
			c.stop(chance(r, 0.3))
			sleep(upTo(r, time.Second))
			c.start()
		}
	case opStart:
		for _, c := range s.ctrls {
			c.start()
		}
	case opActivate:
		for _, c := range s.ctrls {
			c.activate()
		}
	case opDiscard:
		if c.isRunning() {
			c.discard()
		}
	}
}

// key draws an object.
func (s *sim) key(r *rand.Rand, kind memapi.Kind) abi.Key {
	name := kind.Kind[:1] + string(rune('0'+r.IntN(s.plot.names)))
	if !kind.Namespaced {
		return abi.Key{Name: name}
	}
	return abi.Key{Namespace: pick(r, s.plot.namespaces...), Name: name}
}

// change changes or creates an object like a user.
func (s *sim) change(kind memapi.Kind, key abi.Key, create bool, what string, f func(o *unstructured.Unstructured)) {
	o, err := s.api.Change(kind, key, create, func(o *unstructured.Unstructured) error {
		f(o)
		return nil
	})
	if err == nil {
		s.logf("user: %s %s %s: version %s", what, kind.Kind, key, o.GetResourceVersion())
	}
}

func (s *sim) remove(kind memapi.Kind, key abi.Key) {
	if o, err := s.api.Delete(kind, key, ""); err == nil {
		s.logf("user: deletes %s %s: version %s", kind.Kind, key, o.GetResourceVersion())
	}
}

func (s *sim) playObject(kind opKind, r *rand.Rand) {
	what := widgets
	if chance(r, 0.15) {
		what = zones
	}
	key := s.key(r, what)
	spec := func(o *unstructured.Unstructured) {
		set(o, int64(r.IntN(5)), "spec", "value")
		set(o, int64(r.IntN(3)), "spec", "count")
		if o.GetLabels() == nil {
			o.SetLabels(map[string]string{"tier": pick(r, "gold", "gold", "iron")})
		}
	}
	switch kind { //nolint:exhaustive // the others are in play
	case opSpec:
		s.change(what, key, true, "sets", spec)
	case opLabel:
		s.change(what, key, false, "labels", func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"tier": pick(r, "gold", "iron")})
		})
	case opTouch:
		s.change(what, key, false, "touches", func(o *unstructured.Unstructured) { annotate(o, "note", string(rune('a'+r.IntN(9)))) })
	case opPause:
		s.change(what, key, false, "(un)pauses", func(o *unstructured.Unstructured) {
			annotate(o, applier.PausedAnnotation, pick(r, "true", "", ""))
		})
	case opDelete:
		s.remove(what, key)
	case opReplace:
		s.remove(what, key)
		s.change(what, key, true, "replaces", spec)
	}
}

// playConfig changes the objects that a config names, in one of three ways, or another part of it.
func (s *sim) playConfig(kind opKind, r *rand.Rand) {
	target := func() string {
		if chance(r, 0.1) {
			return "nobody"
		}
		return s.key(r, pick(r, widgets, widgets, widgets, zones)).Name
	}
	s.change(configs, s.key(r, configs), kind == opConfig, "sets", func(o *unstructured.Unstructured) {
		if kind == opConfigData {
			set(o, int64(r.IntN(9)), "spec", "data")
			return
		}
		ways := 1 + r.IntN(7)
		if ways&1 != 0 {
			o.SetLabels(map[string]string{mapKey: target(), "tier": pick(r, "gold", "iron")})
		}
		if ways&2 != 0 {
			value := target()
			if chance(r, 0.3) {
				value += ", " + pick(r, s.plot.namespaces...) + "/" + target()
			}
			annotate(o, mapKey, value)
		}
		if ways&4 != 0 {
			set(o, target(), "spec", "for")
		}
	})
}

// playFlip makes a config name an object for a moment in which the object is reconciled for another reason, so that it
// must be notified when it is no longer named.
func (s *sim) playFlip(r *rand.Rand) {
	config, moment := s.key(r, configs), s.key(r, widgets)
	moment.Namespace = config.Namespace
	// An event before it, so that the following one must wait if mappers are slow.
	s.change(configs, s.key(r, configs), false, "nudges", func(o *unstructured.Unstructured) { set(o, int64(r.IntN(99)), "spec", "data") })
	flip := func(name string) {
		s.change(configs, config, true, "flips", func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{mapKey: name, "tier": "gold"})
			annotate(o, mapKey, name)
			set(o, name, "spec", "for")
		})
		sleep(upTo(r, 300*time.Millisecond))
	}
	flip(moment.Name)
	s.change(widgets, moment, false, "touches", func(o *unstructured.Unstructured) {
		annotate(o, "note", string(rune('a'+r.IntN(9))))
		set(o, int64(r.IntN(9)), "spec", "value")
	})
	sleep(upTo(r, 300*time.Millisecond))
	flip("nobody")
}

// playPart does things to a part, whether it is a child or not, that users should not do.
func (s *sim) playPart(r *rand.Rand) {
	all := slices.SortedFunc(maps.Keys(s.api.All(parts)), compareKeys)
	if len(all) == 0 || chance(r, 0.2) {
		key := s.key(r, parts)
		owners := s.owners(r, key.Namespace, false)
		s.change(parts, key, true, "makes", func(o *unstructured.Unstructured) { o.SetOwnerReferences(owners) })
		return
	}
	key := pick(r, all...)
	switch r.IntN(4) {
	case 0:
		s.remove(parts, key)
	case 1:
		s.change(parts, key, false, "tampers with", func(o *unstructured.Unstructured) { set(o, int64(r.IntN(9)), "spec", "value") })
	case 2:
		s.change(parts, key, false, "disowns", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	case 3:
		owners := s.owners(r, key.Namespace, chance(r, 0.5))
		s.change(parts, key, false, "gives away", func(o *unstructured.Unstructured) { o.SetOwnerReferences(owners) })
	}
}

// owners returns a reference to a widget if the drawn one exists.
func (s *sim) owners(r *rand.Rand, namespace string, controller bool) []metav1.OwnerReference {
	key := s.key(r, widgets)
	key.Namespace = namespace
	owner, err := s.api.Get(widgets, key)
	if err != nil {
		return nil
	}
	return []metav1.OwnerReference{ownerOf(owner, controller)}
}

func ownerOf(o *unstructured.Unstructured, controller bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
	if controller {
		ref.Controller = &controller
	}
	return ref
}

// collectGarbage deletes parts whose owners are all gone.
func (s *sim) collectGarbage() {
	owners := s.api.All(widgets)
	for key, o := range s.api.All(parts) {
		gone := func(ref metav1.OwnerReference) bool {
			owner := owners[abi.Key{Namespace: key.Namespace, Name: ref.Name}]
			return owner == nil || owner.GetUID() != ref.UID
		}
		refs := o.GetOwnerReferences()
		if len(refs) > 0 && !slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return !gone(ref) }) {
			if _, err := s.api.Delete(parts, key, ""); err == nil {
				s.logf("garbage: %s", key)
			}
		}
	}
}

func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}

// annotate sets an annotation; "" removes it.
func annotate(o *unstructured.Unstructured, key, value string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	if all[key] = value; value == "" {
		delete(all, key)
	}
	if len(all) == 0 {
		all = nil
	}
	o.SetAnnotations(all)
}

func isConflict(err error) bool { return apierrors.IsConflict(err) }
