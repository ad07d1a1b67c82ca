// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// joined lists a set of words.
func joined(words map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(words)), ", ")
}

// events calls map and filter with objects of their kinds.
func (e *exam) events(ctx context.Context) {
	m := e.module.Manifest()
	if e.module.HasHook(abi.ExportMap) {
		var kinds []abi.Watch
		for _, w := range m.Watches {
			if w.Map == abi.MapFunc {
				kinds = append(kinds, w)
			}
		}
		e.eachEvent(ctx, abi.ExportMap, kinds, func(ev *abi.Event) error {
			_, err := e.module.Map(ctx, ev)
			return err
		})
	}
	if e.module.HasHook(abi.ExportFilter) {
		all := slices.Concat(m.Owns, m.Watches)
		if m.For != nil {
			all = append(all, *m.For)
		}
		kinds := slices.DeleteFunc(all, func(w abi.Watch) bool { return !strings.Contains(strings.Join(w.Predicates, " "), "func") })
		e.eachEvent(ctx, abi.ExportFilter, kinds, func(ev *abi.Event) error {
			_, err := e.module.Filter(ctx, ev)
			return err
		})
	}
}

func (e *exam) eachEvent(ctx context.Context, id string, kinds []abi.Watch, call func(ev *abi.Event) error) {
	if len(kinds) == 0 {
		e.add(id, Warn, "is exported, but no watch of the manifest uses it", "a watch uses map with map: func, and filter with the predicate func")
		return
	}
	for _, w := range kinds {
		for _, ev := range eventsOf(w) {
			if err := call(ev); broke(err) {
				e.add(id, Fail, fmt.Sprintf("of a %s that was %s: %s", w.Kind, strings.ToLower(string(ev.Type)), oneLine(err)), nextOf(err))
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
	e.ok(id, "takes events of %s", kindsText(kinds))
}

// eventsOf returns events of objects with and without optional parts.
func eventsOf(w abi.Watch) []*abi.Event {
	bare := object{"apiVersion": apiVersion(w.Group, w.Version), "kind": w.Kind, "metadata": object{"name": "watched"}}
	full := maps.Clone(bare)
	full["metadata"] = object{
		"name": "watched", "namespace": "default", "uid": "a", "resourceVersion": "1", "labels": object{"größe": "klein"}, "annotations": object{"text": "😀"},
	}
	ev := func(typ abi.EventType, before, after object) *abi.Event {
		out := &abi.Event{Controller: "validate", Group: w.Group, Version: w.Version, Kind: w.Kind, Type: typ, Key: abi.Key{Namespace: "default", Name: "watched"}}
		if before != nil {
			out.Old = encode(before)
		}
		if after != nil {
			out.New = encode(after)
		}
		return out
	}
	return []*abi.Event{
		ev(abi.EventListed, nil, full), ev(abi.EventListed, nil, bare), ev(abi.EventUpdated, bare, full),
		ev(abi.EventUpdated, nil, full), ev(abi.EventDeleted, full, nil), ev(abi.EventDeleted, nil, nil),
	}
}

// configure tries unusual settings. The module may refuse them.
func (e *exam) configure(ctx context.Context) {
	if !e.module.HasHook(abi.ExportConfigure) {
		return
	}
	first, _ := e.module.Settings()
	tried, refused := 0, 0
	for _, key := range append(slices.Sorted(maps.Keys(first)), "validate.wasmctl.dev/unknown") {
		for _, value := range []string{"", "no such value: größe", "-1", strings.Repeat("9", 400)} {
			settings := map[string]string{}
			maps.Copy(settings, e.opts.Settings)
			settings[key] = value
			err := e.module.Configure(ctx, settings)
			if broke(err) {
				e.add("configure", Fail, fmt.Sprintf("with %s=%s: %s", key, clip(value), oneLine(err)), "refuse settings with an error; "+nextOf(err))
				return
			}
			tried++
			if errors.Is(err, operation.ErrRefused) {
				refused++
			}
		}
	}
	if err := e.module.Configure(ctx, e.opts.Settings); err != nil {
		e.add("configure", Fail, "with its first settings again: "+oneLine(err), "configure may be called any number of times, and must leave nothing of earlier settings in place")
		return
	}
	e.ok("configure", "of %d odd settings it refused %d, and it takes its first ones again", tried, refused)
}
