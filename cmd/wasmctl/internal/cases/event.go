// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// event asks each watch of the object's kind which objects the event concerns: first its predicates
// and the guest's filter, then its map.
func (b *bench) event(ctx context.Context) (*Expect, error) {
	ev := b.c.Event
	content := ev.Object
	if content == nil {
		content = ev.Old
	}
	if content == nil {
		return nil, fmt.Errorf("event: object or old is needed")
	}
	change, err := b.change()
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	gvk := (&unstructured.Unstructured{Object: content}).GroupVersionKind()
	seen, watched := &Expect{Action: noRun}, false
	for i, w := range b.w.cache.watches {
		if w.kind.GroupVersionKind != gvk {
			continue
		}
		watched = true
		keys, err := b.concerns(ctx, w, i == 0, change)
		if err != nil {
			return nil, err
		}
		seen.Reconciles = append(seen.Reconciles, keys...)
	}
	if !watched {
		return nil, fmt.Errorf("event: the module does not watch %s", memapi.GVKName(gvk))
	}
	slices.Sort(seen.Reconciles)
	seen.Reconciles = slices.Compact(seen.Reconciles)
	return seen, nil
}

// change returns the event in the form of a watch.
func (b *bench) change() (reflector.Event, error) {
	ev := b.c.Event
	out := reflector.Event{Type: reflector.Applied}
	switch abi.EventType(ev.Type) {
	case "", abi.EventUpdated:
	case abi.EventListed:
		out.Type = reflector.Listed
	case abi.EventDeleted:
		out.Type = reflector.Deleted
	default:
		return out, fmt.Errorf("type: %q is none of Listed, Updated, Deleted", ev.Type)
	}
	for _, state := range []struct {
		object Object
		to     **reflector.Object
	}{{ev.Old, &out.Old}, {ev.Object, &out.New}} {
		if state.object == nil {
			continue
		}
		content, err := b.w.completed(state.object)
		if err != nil {
			return out, err
		}
		if *state.to, err = reflector.Pack(content, reflector.Options{}); err != nil {
			return out, err
		}
	}
	return out, nil
}

// concerns returns the objects that an event of one watch concerns.
func (b *bench) concerns(ctx context.Context, w *watch, self bool, change reflector.Event) ([]string, error) {
	ev := (&queue.HookConfig{Controller: b.w.name(), Group: w.kind.Group, Version: w.kind.Version, Kind: w.kind.Kind}).Event(change)
	filter, err := predicate.Parse(w.Predicates, predicate.Options{})
	if err != nil {
		return nil, err
	}
	if filter.Asks() {
		keep, err := b.module.Filter(ctx, ev)
		if err != nil || !keep {
			return nil, err
		}
	}
	mapper := queue.Self
	if !self {
		if mapper, err = queue.ParseMap(w.Map, queue.Relation{
			Group: b.w.kind.Group, Kind: b.w.kind.Kind, ClusterScoped: !b.w.kind.Namespaced,
			Resource: w.resource().GroupResource().String(), WatchedClusterScoped: !w.kind.Namespaced, ControllerOnly: w.ControllerOnly,
		}); err != nil {
			return nil, err
		}
	}
	var keys []abi.Key
	if mapper == nil {
		keys, err = b.module.Map(ctx, ev)
	} else {
		for _, r := range mapper(nil, change) {
			keys = append(keys, r.Ref)
		}
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	return names, err
}
