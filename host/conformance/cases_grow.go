// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
)

//go:embed testdata/manifest.json
var wantManifest []byte

// manifestCases are about a module's description of itself.
func manifestCases() []Case {
	return []Case{
		{"describe", 8, "describe, or the section, equals testdata/manifest.json", func(p *probe) error {
			return p.manifest(p.rig.module.Manifest())
		}},
		{"describe.alone", 8, "describe works without host functions, on an instance of its own", func(p *probe) error {
			m, err := host.Describe(p.ctx, p.guest.wasm, host.Config{Code: load.Options{CacheDir: p.guest.cacheDir}})
			if err != nil {
				return err
			}
			return p.manifest(m)
		}},
		{"describe.section", 8, "the manifest stays the same when it is written into the section", func(p *probe) error {
			wasm, err := load.WithManifest(p.guest.wasm, p.rig.module.Manifest())
			if err != nil {
				return err
			}
			info := load.Inspect(p.ctx, wasm)
			if len(info.Problems) > 0 {
				return errors.New(info.Problems[0])
			}
			return p.manifest(info.Manifest)
		}},
		{"describe.known-keys", 8, "the manifest has no unknown key", func(p *probe) error {
			if keys := p.rig.module.Info().UnknownKeys; len(keys) > 0 {
				return fmt.Errorf("got %v", keys)
			}
			return nil
		}},
	}
}

// manifest compares everything except the parts that an SDK adds. The order of hooks is free.
func (p *probe) manifest(m *abi.Manifest) error {
	var want abi.Manifest
	if err := json.Unmarshal(wantManifest, &want); err != nil {
		return fmt.Errorf("BUG: testdata/manifest.json: %w", err)
	}
	got := *m
	got.SDK, got.Hooks, want.Hooks = "", slices.Sorted(slices.Values(m.Hooks)), slices.Sorted(slices.Values(want.Hooks))
	got.Wants = slices.DeleteFunc(slices.Clone(m.Wants), func(word string) bool { return word == abi.CapOpaque })
	if m.Hooks == nil { // each export exists
		got.Hooks = want.Hooks
	}
	a, err := json.Marshal(got)
	if err != nil {
		return err
	}
	b, err := json.Marshal(want)
	return first(err, same("manifest", string(a), string(b)))
}

// growCases are about messages of hosts that are newer than the guest: in another order, wider than
// necessary, and with unknown keys and words.
func growCases() []Case {
	return []Case{
		{"grow.request", 9, "a request with unknown keys, in another order", func(p *probe) error { return p.grownRequest(abi.ExportReconcile) }},
		{"grow.finalize", 9, "the same of finalize", func(p *probe) error { return p.grownRequest(abi.ExportFinalize) }},
		{"grow.reason", 9, "an unknown reason", func(p *probe) error {
			req := ask(caseObject(object{"steps": list{do("request")}}))
			req.Reason = abi.Reason{Type: "SolarFlare", Resource: "suns.example.com", Ref: abi.Key{Name: "sol"}}
			r, err := p.run(abi.ExportReconcile, req)
			if err := counted(len(r.steps), 1, err); err != nil {
				return err
			}
			return alike("reason", r.steps[0]["reason"], object{"type": "SolarFlare", "resource": "suns.example.com", "ref": object{"name": "sol"}})
		}},
		{"grow.failure", 9, "a failure with unknown keys, kind and class", (*probe).grownFailure},
		{"grow.event-map", 9, "an event with unknown keys and type, in map", func(p *probe) error { return p.grownEvent(abi.ExportMap) }},
		{"grow.event-filter", 9, "an event with unknown keys and type, in filter", func(p *probe) error { return p.grownEvent(abi.ExportFilter) }},
		{"grow.settings", 9, "settings with unknown keys", func(p *probe) error {
			msg := encode(pairs{{"new", list{object{}}}, {"config", object{"greeting": "new"}}, {"config_gen", wideInt(5)}, {"v", 1}})
			_, out, err := p.rig.module.Exchange(p.ctx, abi.ExportConfigure, msg)
			if err != nil {
				return err
			}
			refusal, _, err := abi.DecodeConfigureResult(out)
			if refusal != nil {
				return refusal
			}
			return first(err, p.configured(5, object{"greeting": "new"}))
		}},
		{"grow.version", 9, "v is ignored: new features have new keys", func(p *probe) error {
			msg := encode(pairs{{"object", caseObject(object{"steps": list{do("echo", "value", 1)}})}, {"v", 2}})
			return p.exchanged(abi.ExportReconcile, msg, "value", 1)
		}},
		{"grow.nil", 3, "nil is taken for an absent key", (*probe).allNil},
	}
}

// unknown returns keys that no version has had.
func unknown() object {
	return object{"deep": list{object{"a": nested(20)}, nil, math.MaxFloat64, int64(math.MinInt64)}, "id": "not this one", "text": "größe"}
}

// wideInt encodes a number in nine bytes.
func wideInt(n byte) raw { return raw{0xcf, 0, 0, 0, 0, 0, 0, 0, n} }

func (p *probe) allNil() error {
	msg := pairs{{"object", caseObject(object{"steps": list{do("request", "caps", list{"a"})}, "then": nil})}}
	for _, key := range []string{
		"reason", "reasons", "key", "caps", "id", "attempt", "deadline_ms", "stale", "controller", "config_gen", "dry_run", "reasons_dropped",
	} {
		msg = append(msg, pair{key, nil})
	}
	s, err := p.exchange(abi.ExportReconcile, encode(msg))
	return first(err, alike("request", s, object{"object": true}))
}

func (p *probe) grownRequest(entry string) error {
	msg := encode(pairs{
		{"zzz", unknown()},
		{"object", caseObject(object{"steps": list{do("request", "caps", list{"api_get", "quantum"})}})},
		{"caps", list{"quantum", "api_get", "x"}},
		{"dry_run", true},
		{"deadline_ms", int64(math.MaxInt64)},
		{"config_gen", wideInt(7)},
		{"stale", true},
		{"key", pairs{{"cluster", "new"}, {"name", "n"}, {"namespace", "ns"}}},
		{"attempt", wideInt(9)},
		{"", nil},
		{"reasons", list{object{"type": "Retry", "since": 1}}},
		{"reason", pairs{{"new", list{}}, {"type", "Requeue"}}},
		{"controller", "c"},
		{"priority", unknown()},
		{"id", "run-9"},
		{"v", wideInt(1)},
	})
	s, err := p.exchange(entry, msg)
	return first(err, alike("request", s, object{
		"id": "run-9", "controller": "c", "attempt": 9, "key": object{"namespace": "ns", "name": "n"}, "stale": true, "config_gen": 7, "object": true,
		"deadline_ms": int64(math.MaxInt64), "dry_run": true, "reason": object{"type": "Requeue"},
		"reasons": list{object{"type": "Requeue"}, object{"type": "Retry"}}, "caps": object{"api_get": true, "quantum": true},
	}))
}

func (p *probe) grownFailure() error {
	msg := encode(pairs{
		{"node", unknown()},
		{"first_failed_ms", wideInt(200)},
		{"kind", "meltdown"},
		{"error", pairs{{"cause", unknown()}, {"message", "m"}, {"class", "cosmic"}, {"after_ms", wideInt(3)}}},
		{"object", caseObject(object{"policy": object{"action": "requeue", "after_ms": 5, "jitter": true}})},
		{"attempt", 1},
		{"key", object{"name": "n"}},
		{"id", "run-9"},
		{"v", 1},
	})
	_, out, err := p.rig.module.Exchange(p.ctx, abi.ExportErrorPolicy, msg)
	if err != nil {
		return err
	}
	res, err := abi.DecodeResult(out)
	if err != nil {
		return err
	}
	report, _, err := p.reported(abi.ExportErrorPolicy)
	return first(err, same("action", res.Action.String(), "requeue after 5ms"), alike("report", report, object{
		"entry": "error_policy", "id": "run-9", "key": object{"name": "n"}, "attempt": 1, "first_failed_ms": 200, "kind": "meltdown", "class": "cosmic",
		"message": "m", "after_ms": 3, "object": true,
	}))
}

func (p *probe) grownEvent(entry string) error {
	do := object{"map": object{"keys": list{object{"name": "a"}}}, "filter": object{"keep": true}}
	msg := encode(pairs{
		{"new", secret(do)},
		{"old", secret(object{})},
		{"between", unknown()},
		{"key", pairs{{"uid", "u"}, {"name", "s"}}},
		{"type", "Teleported"},
		{"watch", pairs{{"kind", "Secret"}, {"resource", "secrets"}, {"version", "v1"}, {"group", ""}}},
		{"controller", "c"},
		{"v", wideInt(1)},
	})
	value, out, err := p.rig.module.Exchange(p.ctx, entry, msg)
	if err != nil {
		return err
	}
	if entry == abi.ExportFilter {
		err = same("filter", int(value), 1) //nolint:gosec // 32 bits
	} else {
		res, bad := abi.DecodeMapResult(out)
		err = first(bad, same("keys", fmt.Sprint(res.Keys), "[a]"))
	}
	report, _, bad := p.reported(entry)
	return first(err, bad, alike("report", report, object{
		"entry": entry, "type": "Teleported", "watch": object{"version": "v1", "kind": "Secret"}, "key": object{"name": "s"}, "old": true, "new": true,
	}))
}
