// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/operation"
)

// secret is the watched object of an event.
func secret(spec object) object {
	return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s", "namespace": "default"}, "spec": spec}
}

// event returns an event of a Secret. Nil objects are absent.
func event(typ abi.EventType, before, after any) *abi.Event {
	ev := &abi.Event{Controller: "conformance", Version: "v1", Kind: "Secret", Type: typ, Key: abi.Key{Namespace: "default", Name: "s"}}
	if before != nil {
		ev.Old = encode(before)
	}
	if after != nil {
		ev.New = encode(after)
	}
	return ev
}

// eventCases are about map and filter.
func eventCases() []Case {
	many := make(list, abi.MaxItems)
	for i := range many {
		many[i] = object{"namespace": "default", "name": fmt.Sprintf("n%d", i)}
	}
	cases := []Case{
		mapCase("none", "no keys", list{}),
		mapCase("keys", "keys of both scopes, in their order", list{object{"namespace": "default", "name": "b"}, object{"name": "a"}, object{"namespace": "größe", "name": "😀"}}),
		mapCase("many", "10,000 keys", many),
		mapErrorCase("error", "an error of map", abi.ResultError{Class: abi.ErrorTransient, Message: "not yet", Reason: "NotSynced"}),
		mapErrorCase("error-permanent", "a permanent error of map", abi.ResultError{Class: abi.ErrorPermanent, Message: "m"}),
		filterCase("keep", "1 keeps an event", true), filterCase("drop", "0 drops an event", false),
	}
	do := object{"map": object{"keys": list{}}, "filter": object{"keep": true}}
	for _, ev := range []struct {
		id, about string
		ev        *abi.Event
	}{
		{"listed", "an object that was there", event(abi.EventListed, nil, secret(do))},
		{"updated", "a change", event(abi.EventUpdated, secret(object{}), secret(do))},
		{"deleted", "an object that is gone", event(abi.EventDeleted, secret(do), nil)},
		{"large", "an event of two objects of 1 MiB", event(abi.EventUpdated, large(do), large(do))},
	} {
		for _, entry := range []string{abi.ExportMap, abi.ExportFilter} {
			cases = append(cases, Case{entry + ".event." + ev.id, 4, ev.about, func(p *probe) error { return p.event(entry, ev.ev) }})
		}
	}
	for _, entry := range []string{abi.ExportMap, abi.ExportFilter} {
		cases = append(cases, Case{entry + ".operations", 5, "config_get and the cache work in " + entry + ", nothing else does", func(p *probe) error {
			return p.eventOperations(entry)
		}})
	}
	return cases
}

func large(spec object) object {
	o := secret(spec)
	o["data"] = object{"a": strings.Repeat("hidden!", 1<<20/7)} // the host removes the values of Secrets from logs
	return o
}

func mapCase(id, about string, keys list) Case {
	return Case{"map." + id, 4, about, func(p *probe) error {
		got, err := p.rig.module.Map(p.ctx, event(abi.EventUpdated, nil, secret(object{"map": object{"keys": keys}})))
		if err != nil {
			return err
		}
		var found list
		for _, k := range got {
			found = append(found, object{"namespace": k.Namespace, "name": k.Name})
		}
		return alike("keys", found, keys)
	}}
}

func mapErrorCase(id, about string, want abi.ResultError) Case {
	return Case{"map." + id, 4, about, func(p *probe) error {
		given := object{"class": string(want.Class), "message": want.Message, "reason": want.Reason}
		_, err := p.rig.module.Map(p.ctx, event(abi.EventUpdated, nil, secret(object{"map": object{"error": given}})))
		if e, ok := errors.AsType[*abi.ResultError](err); !ok || *e != want {
			return instead(err, errorText(&want))
		}
		return nil
	}}
}

func filterCase(id, about string, keep bool) Case {
	return Case{"filter." + id, 4, about, func(p *probe) error {
		got, err := p.rig.module.Filter(p.ctx, event(abi.EventUpdated, nil, secret(object{"filter": object{"keep": keep}})))
		return first(err, same("filter", got, keep))
	}}
}

// event passes an event to map or filter, and compares the report.
func (p *probe) event(entry string, ev *abi.Event) error {
	if err := p.call(entry, ev); err != nil {
		return err
	}
	report, _, err := p.reported(entry)
	return first(err, alike("report", report, object{
		"entry": entry, "type": string(ev.Type), "watch": object{"version": "v1", "kind": "Secret"}, "key": object{"namespace": "default", "name": "s"},
		"old": ev.Old != nil, "new": ev.New != nil,
	}))
}

func (p *probe) call(entry string, ev *abi.Event) error {
	if entry == abi.ExportMap {
		_, err := p.rig.module.Map(p.ctx, ev)
		return err
	}
	keep, err := p.rig.module.Filter(p.ctx, ev)
	return first(err, same("filter", keep, true))
}

func (p *probe) eventOperations(entry string) error {
	return p.cacheOnly(entry, true, func(steps list) error {
		return p.call(entry, event(abi.EventUpdated, nil, secret(object{entry: object{"steps": steps, "keep": true}})))
	})
}

// cacheOnly checks that config_get, and the cache if it is there, are all operations that work in an entry.
func (p *probe) cacheOnly(entry string, cache bool, call func(steps list) error) error {
	key := object{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default"}
	err := call(list{
		do("op", "op", "config_get", "request", object{"key": "greeting"}),
		do("op", "op", "cache_get", "request", configMap("a")), do("op", "op", "cache_list", "request", key),
		do("op", "op", "api_get", "request", configMap("a")), do("op", "op", "event_record", "request", object{"reason": "Seen"}),
	})
	if err != nil {
		return err
	}
	_, got, err := p.reported(entry)
	if err := counted(len(got), 5, err); err != nil {
		return err
	}
	read, requests := abi.StatusUnavailable, []asked(nil)
	if cache {
		read, requests = abi.StatusOK, []asked{{abi.OpCacheGet, encode(configMap("a"))}, {abi.OpCacheList, encode(key)}}
	}
	for i, want := range []abi.Status{abi.StatusOK, read, read, abi.StatusUnavailable, abi.StatusUnavailable} {
		if err := same(fmt.Sprintf("step %d: status", i), orZero(got[i]["status"]), int64(want)); err != nil {
			return err
		}
	}
	return first(same("greeting", got[0]["body"], "hello"), p.asked(requests...))
}

// orZero returns an optional number.
func orZero(v any) any {
	if v == nil {
		return int64(0)
	}
	return v
}

// configureCases are about configure and the settings.
func configureCases() []Case {
	return []Case{
		{"configure.first", 4, "configure is given the defaults of the manifest under the settings", func(p *probe) error {
			return p.with(host.Config{Settings: map[string]string{"greeting": "hi", "more": "1"}}, func() error {
				return p.configured(1, object{"greeting": "hi", "größe": "klein", "more": "1"})
			})
		}},
		{"configure.change", 4, "a change is announced, and counted in requests", func(p *probe) error {
			return p.with(host.Config{}, func() error {
				err := first(p.configured(1, object{"greeting": "hello", "größe": "klein"}), p.rig.module.Configure(p.ctx, map[string]string{"greeting": "😀"}))
				if err = first(err, p.configured(2, object{"greeting": "😀", "größe": "klein"})); err != nil {
					return err
				}
				steps, err := p.steps(do("request"), do("op", "op", "config_get", "request", object{"key": "greeting"}))
				if err != nil {
					return err
				}
				return first(same("config_gen", steps[0]["config_gen"], 2), same("greeting", steps[1]["body"], "😀"))
			})
		}},
		{"configure.refuse", 4, "a refused change leaves the settings as they were", func(p *probe) error {
			return p.with(host.Config{}, func() error {
				err := p.rig.module.Configure(p.ctx, map[string]string{"refuse": "never größe"})
				refusal, ok := errors.AsType[*abi.ResultError](err)
				if !ok || !errors.Is(err, operation.ErrRefused) || refusal.Message != "never größe" {
					return instead(err, "a refusal: never größe")
				}
				s, err := p.step(do("request"))
				return first(err, same("config_gen", s["config_gen"], 1))
			})
		}},
		{"configure.refuse-first", 4, "a module that refuses its first settings is not loaded", func(p *probe) error {
			_, err := p.guest.openWith(p.ctx, host.Config{Settings: map[string]string{"refuse": "no"}}, true)
			if !errors.Is(err, operation.ErrRefused) {
				return instead(err, "a refusal")
			}
			return nil
		}},
		{"configure.operations", 5, "config_get serves the tried settings, and nothing else works", func(p *probe) error {
			return p.with(host.Config{Settings: map[string]string{"greeting": "tried", "try": "yes"}}, func() error {
				_, steps, err := p.reported(abi.ExportConfigure)
				if err := counted(len(steps), 2, err); err != nil {
					return err
				}
				return first(same("greeting", steps[0]["body"], "tried"), same("api_get", steps[1]["status"], int64(abi.StatusUnavailable)))
			})
		}},
	}
}

// configured compares the report of the last configure.
func (p *probe) configured(gen int, config object) error {
	report, _, err := p.reported(abi.ExportConfigure)
	return first(err, alike("report", report, object{"entry": "configure", "config_gen": gen, "config": config}))
}
