// SPDX-License-Identifier: Apache-2.0

// A guest of the conformance kit, written with the Go SDK. It does what the
// object of a run says, and reports what it saw; ../../README.md is what it has
// to do.
package main

import (
	"errors"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

var manifest = wasmctl.Manifest{
	Name: "conformance", Version: "1.0.0",
	For: &wasmctl.Watch{
		Group: "conformance.wasmctl.dev", Version: "v1", Kind: "Case",
		LabelSelector: "conformance.wasmctl.dev/run=yes", Predicates: []string{"generation"},
	},
	Owns: []wasmctl.Watch{{Version: "v1", Kind: "ConfigMap", ControllerOnly: true}},
	Watches: []wasmctl.Watch{
		{Version: "v1", Kind: "Secret", Mapper: mapEvent, Filter: keepEvent},
		{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespaces: []string{"default", "größe"},
			Map: "label:conformance.wasmctl.dev/case", MetadataOnly: true, Optional: true,
		},
	},
	Capabilities: []wasmctl.Capability{
		{
			Resource: "configmaps", Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
			Fields: []string{"data", "metadata.labels[größe]"},
		},
		{
			Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"get", "update"},
			Namespaces: []string{"default"}, Names: []string{"web"},
		},
		{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}},
	},
	Limits: &wasmctl.Limits{
		Memory: 256 << 20, Timeout: 30_000, HostCalls: 1000, LogLines: 1_000_000, EventRate: 100_000,
		APIRate: 50, MetricSeries: 50,
	},
	Webhooks: []wasmctl.Webhook{
		{
			Path: "/validate", Name: "validate.conformance.wasmctl.dev", Validate: judge("validate"),
			Rules: []wasmctl.WebhookRule{{
				Groups: []string{"conformance.wasmctl.dev"}, Versions: []string{"v1", "v2"}, Resources: []string{"cases", "cases/status"},
				Operations: []wasmctl.Operation{wasmctl.OperationCreate, wasmctl.OperationUpdate, wasmctl.OperationDelete}, Scope: "Namespaced",
			}},
			FailurePolicy: "Ignore", MatchPolicy: "Exact", TimeoutSeconds: 5, NamespaceSelector: "team in (a, b)", ObjectSelector: "!legacy",
			MatchConditions: []wasmctl.MatchCondition{{Name: "named", Expression: "object.metadata.name != ''"}},
		},
		{
			Path: "/mutate", Default: judge("default"), Reinvocation: "IfNeeded",
			Rules: []wasmctl.WebhookRule{{
				Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"cases"}, Operations: []wasmctl.Operation{"*"},
			}},
		},
	},
	Conversions: []wasmctl.Conversion{{
		Group: "conformance.wasmctl.dev", Kind: "Case", Versions: []string{"v1", "v2"}, Convert: convert,
	}},
	Finalizer:   "conformance.wasmctl.dev/case",
	Concurrency: 2,
	Config:      map[string]string{"greeting": "hello", "größe": "klein"},
	Requires:    []string{"config_get"},
	Wants:       []string{"teleport"},
}

func init() {
	wasmctl.Register(wasmctl.Reconciler{
		Manifest: manifest,
		Reconcile: func(ctx *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
			return run(ctx, obj, "reconcile")
		},
		Finalize: func(ctx *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
			return run(ctx, obj, "finalize")
		},
		ErrorPolicy: errorPolicy,
		Configure:   configure,
	})
}

func main() {} // not run in a module

// run is reconcile and finalize: the steps, the report of them as status, and
// what spec.then asks for.
func run(ctx *wasmctl.Context, obj wasmctl.Object, entry string) (wasmctl.Action, error) {
	if !obj.Exists() {
		report := wasmctl.Map{"entry": entry, "steps": []any{request(ctx, obj, wasmctl.Value{})}}
		return wasmctl.AwaitChange().Status(report), nil
	}
	report := wasmctl.Map{"entry": entry, "steps": steps(ctx, obj, obj.At("spec", "steps"))}
	then := obj.At("spec", "then")
	if then.Exists("error") {
		return wasmctl.AwaitChange().Status(report), failure(then.At("error"))
	}
	action := next(then).Status(report)
	if then.Exists("apply") {
		for _, child := range then.Elements("apply") {
			action = action.Apply(child)
		}
	}
	if then.Bool("prune") {
		action = action.Prune()
	}
	if then.Bool("force") {
		action = action.Force()
	}
	return action, nil
}

// next is the action of a spec.then or a spec.policy.
func next(v wasmctl.Value) wasmctl.Action {
	if v.String("action") != "requeue" {
		return wasmctl.AwaitChange()
	}
	return wasmctl.Requeue(millis(v))
}

func millis(v wasmctl.Value) time.Duration {
	return time.Duration(v.Int("after_ms")) * time.Millisecond
}

// failure is the error that v describes.
func failure(v wasmctl.Value) error {
	err := errors.New(v.String("message"))
	switch v.String("class") {
	case "permanent":
		err = wasmctl.Permanent(err)
	case "conflict":
		err = wasmctl.Conflict(err)
	}
	if v.Exists("reason") {
		err = wasmctl.WithReason(err, v.String("reason"))
	}
	if v.Exists("after_ms") {
		err = wasmctl.RetryAfter(err, millis(v))
	}
	return err
}

func errorPolicy(ctx *wasmctl.Context, obj wasmctl.Object, f wasmctl.Failure) wasmctl.Action {
	first := int64(0)
	if !f.FirstFailed.IsZero() {
		first = f.FirstFailed.UnixMilli()
	}
	tell(ctx, wasmctl.Map{
		"entry": "error_policy", "id": ctx.ID(), "key": ctx.Key(), "attempt": f.Attempt, "first_failed_ms": first,
		"kind": string(f.Kind), "class": string(f.Class), "message": f.Message, "reason": f.Reason, "after_ms": f.After.Milliseconds(),
		"object": obj.Exists(), "steps": steps(ctx, obj, obj.At("spec", "policy", "steps")),
	})
	return next(obj.At("spec", "policy"))
}

func mapEvent(ctx *wasmctl.Context, e wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	do := e.Object().At("spec", "map")
	tellEvent(ctx, "map", e, do)
	if do.Exists("error") {
		return nil, failure(do.At("error"))
	}
	var keys []wasmctl.ObjectKey
	for _, k := range do.Elements("keys") {
		keys = append(keys, wasmctl.ObjectKey{Namespace: k.String("namespace"), Name: k.String("name")})
	}
	return keys, nil
}

func keepEvent(ctx *wasmctl.Context, e wasmctl.WatchEvent) bool {
	do := e.Object().At("spec", "filter")
	tellEvent(ctx, "filter", e, do)
	return do.Bool("keep")
}

func tellEvent(ctx *wasmctl.Context, entry string, e wasmctl.WatchEvent, do wasmctl.Value) {
	tell(ctx, wasmctl.Map{
		"entry": entry, "type": string(e.Type), "watch": wasmctl.Map{"group": e.Group, "version": e.Version, "kind": e.Kind},
		"key": e.Key, "old": e.Old.Exists(), "new": e.New.Exists(), "steps": steps(ctx, e.Object(), do.At("steps")),
	})
}

func configure(ctx *wasmctl.Context, settings map[string]string) error {
	report := wasmctl.Map{"entry": "configure", "config_gen": ctx.ConfigGeneration(), "config": settings}
	if settings["try"] == "yes" {
		key := mustValue(wasmctl.Map{"key": "greeting"})
		object := mustValue(wasmctl.Map{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"})
		report["steps"] = []any{operate(ctx, "config_get", key), operate(ctx, "api_get", object)}
	}
	tell(ctx, report)
	if text := settings["refuse"]; text != "" {
		return errors.New(text)
	}
	return nil
}

// tell is how entries report whose result has no status.
func tell(ctx *wasmctl.Context, report wasmctl.Map) { ctx.Log().Info("report", "report", report) }

func mustValue(v any) wasmctl.Value {
	val, err := wasmctl.NewValue(v)
	if err != nil {
		panic(err)
	}
	return val
}
