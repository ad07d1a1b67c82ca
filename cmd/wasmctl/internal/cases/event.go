package cases

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// event asks for each watch of the object's kind whom the event concerns: its
// predicates and the guest's filter first, then its map.
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
	for i, w := range b.w.watches {
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

// change is the event as a watch brings it.
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
	ev := abiEvent(w, change, b.w.name())
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
	if self {
		return names(queue.Self(nil, change)), nil
	}
	mapper, err := queue.ParseMap(w.Map, queue.Relation{
		Group: b.w.kind.Group, Kind: b.w.kind.Kind, ClusterScoped: !b.w.kind.Namespaced,
		Resource: w.resource().GroupResource().String(), WatchedClusterScoped: !w.kind.Namespaced, ControllerOnly: w.ControllerOnly,
	})
	if err != nil {
		return nil, err
	}
	if mapper != nil {
		return names(mapper(nil, change)), nil
	}
	keys, err := b.module.Map(ctx, ev)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.String()
	}
	return out, nil
}

func names(requests []queue.Request) []string {
	out := make([]string, len(requests))
	for i, r := range requests {
		out[i] = r.Ref.String()
	}
	return out
}

// abiEvent is an event as map and filter get it.
func abiEvent(w *watch, change reflector.Event, controller string) *abi.Event {
	ev := &abi.Event{Controller: controller, Group: w.kind.Group, Version: w.kind.Version, Kind: w.kind.Kind, Type: abi.EventUpdated, Key: change.Ref()}
	switch change.Type {
	case reflector.Listed, reflector.Relisted:
		ev.Type = abi.EventListed
	case reflector.Deleted:
		ev.Type = abi.EventDeleted
	case reflector.Applied:
	}
	if change.Old != nil {
		ev.Old = change.Old.Msgpack()
	}
	if change.New != nil && change.Type != reflector.Deleted {
		ev.New = change.New.Msgpack()
	}
	return ev
}
