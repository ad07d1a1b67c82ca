// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// steps carries out all steps of a list and returns one report for each.
func steps(ctx *wasmctl.Context, obj wasmctl.Object, list wasmctl.Value) []any {
	reports := []any{}
	for _, s := range list.Elements() {
		reports = append(reports, step(ctx, obj, s))
	}
	return reports
}

func step(ctx *wasmctl.Context, obj wasmctl.Object, s wasmctl.Value) wasmctl.Map {
	switch do := s.String("do"); do {
	case "request":
		return request(ctx, obj, s)
	case "echo":
		return echo(s.At("value"))
	case "read":
		return wasmctl.Map{"value": read(obj, s.String("as"), s.Strings("path"))}
	case "op":
		return operate(ctx, s.String("op"), s.At("request"))
	case "log":
		return log(ctx.Log(), s)
	case "levels":
		kept := []any{}
		for _, level := range []wasmctl.Level{wasmctl.LevelDebug, wasmctl.LevelInfo, wasmctl.LevelWarn, wasmctl.LevelError} {
			if ctx.Log().Enabled(level) {
				kept = append(kept, int64(level))
			}
		}
		return wasmctl.Map{"kept": kept}
	case "trap", "spin", "grow":
		end(do, s.String("text"))
		return nil
	default:
		return facts(ctx, do, s)
	}
}

// facts are the steps that ask the host for one thing.
func facts(ctx *wasmctl.Context, do string, s wasmctl.Value) wasmctl.Map {
	switch do {
	case "now":
		return wasmctl.Map{"ms": ctx.Now().UnixMilli()}
	case "mono":
		first := ctx.Monotonic()
		return wasmctl.Map{"ns": []any{int64(first), int64(ctx.Monotonic())}}
	case "random":
		b := make([]byte, s.Int("len"))
		if err := ctx.Random(b); err != nil {
			return fault(err)
		}
		return wasmctl.Map{"hex": hex.EncodeToString(b)}
	case "metric":
		return done(ctx.Metric(wasmctl.MetricKind(s.Int("kind")), s.String("name"), s.Float("value")))
	case "cancelled":
		return wasmctl.Map{"cancelled": ctx.Cancelled()}
	case "budget":
		left, bounded := ctx.Budget(wasmctl.BudgetKind(s.Int("kind")))
		if !bounded {
			left = -1
		}
		return wasmctl.Map{"left": left}
	}
	return wasmctl.Map{"lacks": do}
}

// request is all that the SDK says of the run.
func request(ctx *wasmctl.Context, obj wasmctl.Object, s wasmctl.Value) wasmctl.Map {
	m := wasmctl.Map{
		"id": ctx.ID(), "controller": ctx.Controller(), "reason": reason(ctx.Reason()), "attempt": ctx.Attempt(), "key": ctx.Key(),
		"stale": ctx.Stale(), "config_gen": ctx.ConfigGeneration(), "dry_run": ctx.DryRun(), "object": obj.Exists(),
	}
	if deadline, ok := ctx.Deadline(); ok {
		m["deadline_ms"] = deadline.UnixMilli()
	}
	all, dropped := ctx.Reasons()
	list := []any{}
	for _, r := range all {
		list = append(list, reason(r))
	}
	m["reasons"], m["dropped"] = list, dropped
	caps := wasmctl.Map{}
	for _, name := range s.Strings("caps") {
		caps[name] = ctx.HostHas(name)
	}
	m["caps"] = caps
	return m
}

func reason(r wasmctl.Reason) wasmctl.Map {
	return wasmctl.Map{"type": string(r.Type), "resource": r.Resource, "ref": wasmctl.Map{"namespace": r.Ref.Namespace, "name": r.Ref.Name}}
}

func echo(v wasmctl.Value) wasmctl.Map {
	plain, err := wasmctl.Decode[any](v)
	if err != nil {
		return wasmctl.Map{"failed": err.Error()}
	}
	return wasmctl.Map{"value": plain}
}

func read(obj wasmctl.Object, as string, path []string) any {
	switch as {
	case "string":
		return obj.String(path...)
	case "int":
		return obj.Int(path...)
	case "float":
		return obj.Float(path...)
	case "bool":
		return obj.Bool(path...)
	case "len":
		return obj.Len(path...)
	}
	names := []string{"absent", "nil", "bool", "int", "float", "string", "array", "map"}
	return names[obj.Type(path...)]
}

func log(l *wasmctl.Logger, s wasmctl.Value) wasmctl.Map {
	var attrs []any
	for k, v := range s.Entries("attrs") {
		attrs = append(attrs, k, v)
	}
	write := map[int64]func(string, ...any){-4: l.Debug, 0: l.Info, 4: l.Warn, 8: l.Error}[s.Int("level")]
	if write == nil {
		return wasmctl.Map{"lacks": "log"}
	}
	write(s.String("msg"), attrs...)
	return wasmctl.Map{}
}

// kept holds what grow allocates.
var kept [][]byte

// end ends the call in one of the ways that a host must survive.
func end(how, text string) {
	switch how {
	case "trap":
		panic(text)
	case "spin":
		for i := 0; ; i++ {
			kept = kept[:0]
		}
	}
	for {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
}
