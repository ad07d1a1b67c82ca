// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

var deadline = time.UnixMilli(1767225600123)

func TestGolden_RequestFullIsReadByTheContextAndTheObject(t *testing.T) {
	called := false
	run(t, &scriptHost{}, golden(t, "request-full"), func(ctx *Context, obj Object) (Action, error) {
		called = true
		equal(t, ctx.ID(), "8f3a-42")
		equal(t, ctx.Controller(), "configmapgenerator")
		equal(t, ctx.Key(), ObjectKey{"default", "hello"})
		equal(t, ctx.Reason(), Reason{ReasonRelated, "configmaps", ObjectKey{"default", "hello-content"}})
		equal(t, ctx.Attempt(), 3)
		equal(t, ctx.Stale(), true)
		equal(t, ctx.DryRun(), true)
		equal(t, ctx.ConfigGeneration(), int64(2))
		equal(t, ctx.HostHas("config_get"), true)
		equal(t, ctx.HostHas("cache_get"), false)
		if at, ok := ctx.Deadline(); !ok || !at.Equal(deadline) {
			t.Errorf("deadline %v, %v", at, ok)
		}
		equal(t, obj.Ref(), ObjectRef{"examples.wasmctl.dev/v1", "ConfigMapGenerator", "default", "hello"})
		equal(t, obj.UID(), "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11")
		equal(t, obj.Generation(), int64(3))
		equal(t, obj.ResourceVersion(), "4711")
		equal(t, obj.Labels(), map[string]string{"app": "demo", "größe": "klein"})
		equal(t, obj.Label("größe"), "klein")
		equal(t, obj.String("spec", "content"), "hello, world")
		equal(t, obj.Len("spec", "list"), 6)
		var list []any
		if err := obj.Decode(&list, "spec", "list"); err != nil {
			t.Error(err)
		}
		equal(t, list, []any{int64(1), int64(-1), int64(1099511627776), 1.5, true, nil})
		return AwaitChange(), nil
	})
	if !called {
		t.Error("Reconcile was not called")
	}
}

func TestGolden_RequestMinimalLeavesTheRestZero(t *testing.T) {
	called := false
	run(t, &scriptHost{}, golden(t, "request-minimal"), func(ctx *Context, obj Object) (Action, error) {
		called = true
		equal(t, obj.Exists(), false)
		equal(t, ctx.Key(), ObjectKey{Name: "cluster-scoped"})
		equal(t, ctx.Reason(), Reason{Type: ReasonListed})
		equal(t, ctx.DryRun() || ctx.Stale() || ctx.HostHas("api_get"), false)
		if _, ok := ctx.Deadline(); ok {
			t.Error("there is a deadline")
		}
		return AwaitChange(), nil
	})
	equal(t, called, true)
}

func TestGolden_RequestMergedHasAllReasons(t *testing.T) {
	called := false
	run(t, &scriptHost{}, golden(t, "request-merged"), func(ctx *Context, _ Object) (Action, error) {
		called = true
		reasons, dropped := ctx.Reasons()
		equal(t, reasons, []Reason{
			{Type: ReasonResync}, {ReasonRelated, "deployments.apps", ObjectKey{"default", "web"}}, {Type: ReasonConfigChanged},
		})
		equal(t, []any{dropped, ctx.Reason(), reasons[1].String()}, []any{3, reasons[0], "Related deployments.apps default/web"})
		return AwaitChange(), nil
	})
	equal(t, called, true)
}

func TestGolden_EventsAreReadByMapperAndFilter(t *testing.T) {
	colors := Watch{Group: "example.com", Kind: "Color"}
	want := map[string]WatchEvent{
		"event-listed":  {Type: WatchListed, Version: "v1", Kind: "ConfigMap", Key: ObjectKey{"default", "hello"}},
		"event-updated": {Type: WatchUpdated, Version: "v1", Kind: "ConfigMap", Key: ObjectKey{"default", "hello"}},
		"event-deleted": {Type: WatchDeleted, Group: "example.com", Version: "v1beta1", Kind: "Color", Key: ObjectKey{Name: "blue"}},
	}
	for name, want := range want {
		var seen []WatchEvent
		check := func(e WatchEvent) {
			m := goldenValue(t, name)
			equal(t, []bool{e.Old.Exists(), e.New.Exists(), e.Object().Exists()}, []bool{m["old"] != nil, m["new"] != nil, true})
			e.Old, e.New = Object{}, Object{}
			seen = append(seen, e)
		}
		w := Watch{
			Kind: "ConfigMap",
			Mapper: func(_ *Context, e WatchEvent) ([]ObjectKey, error) {
				check(e)
				return []ObjectKey{e.Key, {Name: "blue"}}, nil
			},
			Filter: func(_ *Context, e WatchEvent) bool { check(e); return false },
		}
		other := w
		other.Group, other.Kind = colors.Group, colors.Kind
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Manifest: Manifest{Watches: []Watch{w, other}}}}
		keys := Value{append([]byte(nil), g.call("map", golden(t, name))...)}
		equal(t, g.keep(golden(t, name)), false)
		equal(t, seen, []WatchEvent{want, want})
		equal(t, []any{keys.Len("keys"), keys.Exists("error")}, []any{2, false})
	}
}

func TestGolden_KeysAreWritten(t *testing.T) {
	cases := map[string]Mapper{
		"keys-two": func(*Context, WatchEvent) ([]ObjectKey, error) {
			return []ObjectKey{{"default", "hello"}, {"", "blue"}}, nil
		},
		"keys-none": func(*Context, WatchEvent) ([]ObjectKey, error) { return []ObjectKey{}, nil },
		"keys-error": func(*Context, WatchEvent) ([]ObjectKey, error) {
			return nil, WithReason(errors.New("the cache has no namespace yet"), "NotSynced")
		},
	}
	for name, mapper := range cases {
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Manifest: Manifest{Watches: []Watch{{Kind: "ConfigMap", Mapper: mapper}}}}}
		got, err := wire.Decode(g.call("map", golden(t, "event-listed")))
		equal(t, []any{got, err}, []any{any(goldenValue(t, name)), nil})
	}
}

func TestGolden_SettingsAreGivenToConfigure(t *testing.T) {
	cases := map[string]map[string]string{"settings-none": {}, "settings-two": {"größe": "klein", "suffix": "-content"}}
	for name, want := range cases {
		var got map[string]string
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{Configure: func(ctx *Context, settings map[string]string) error {
			got = settings
			equal(t, ctx.ConfigGeneration(), map[bool]int64{true: 1, false: 7}[len(want) == 0])
			return nil
		}}}
		equal(t, len(g.call("configure", golden(t, name))), 0)
		equal(t, got, want)
	}
}

func TestGolden_RecordsAreWritten(t *testing.T) {
	full := Event{
		Type: EventWarning, Reason: "NotOwned", Action: "Apply", Note: "the ConfigMap hello-content belongs to somebody else",
		Regarding: &EventObject{ObjectRef{"v1", "ConfigMap", "default", "hello-content"}, "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11"},
		Related:   &EventObject{ObjectRef: ObjectRef{APIVersion: "example.com/v1", Kind: "Color", Name: "blue"}},
	}
	for name, e := range map[string]Event{"record-full": full, "record-minimal": {Reason: "Created"}} {
		host := &scriptHost{}
		run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
			equal(t, ctx.RecordEvent(e), nil)
			return AwaitChange(), nil
		})
		equal(t, host.asked(t), any(goldenValue(t, name)))
	}
}

func TestGolden_FailuresAreReadByErrorPolicy(t *testing.T) {
	cases := map[string]Failure{
		"failure-error": {
			Kind: FailureError, Class: ErrorConflict, Message: "configmap is not ours", Reason: "NotOwned",
			After: 5 * time.Second, Attempt: 2, FirstFailed: deadline,
		},
		"failure-trap": {Kind: FailureTrap, Class: ErrorTransient, Message: "unreachable", Attempt: 1, FirstFailed: deadline},
	}
	for name, want := range cases {
		var got Failure
		g := &guest{host: &scriptHost{}, reconciler: &Reconciler{
			ErrorPolicy: func(ctx *Context, obj Object, f Failure) Action {
				got = f
				equal(t, ctx.Key(), ObjectKey{"default", "hello"})
				equal(t, obj.Exists(), name == "failure-error")
				return Requeue(time.Second)
			},
		}}
		result, err := wire.Decode(g.call("error_policy", golden(t, name)))
		equal(t, got, want)
		equal(t, err, nil)
		equal(t, result, any(map[string]any{"action": "requeue", "after_ms": int64(1000)}))
	}
}

func TestGolden_ResultsAreWritten(t *testing.T) {
	ours := WithReason(RetryAfter(&Error{Status: 409, Message: "x"}, 5*time.Second), "NotOwned")
	declared := goldenValue(t, "result-declared")
	children := declared["apply"].([]any) //nolint:forcetypeassert // it fails here
	small, full, status := children[0], children[1], declared["status"]
	cases := map[string]func() (Action, error){
		"result-await":    func() (Action, error) { return AwaitChange(), nil },
		"result-requeue":  func() (Action, error) { return Requeue(300 * time.Second), nil },
		"result-error":    func() (Action, error) { return Action{}, &renamed{ours, "configmap is not ours"} },
		"result-declared": func() (Action, error) { return Apply(small, full).Prune().Status(status), nil },
		"result-prune":    func() (Action, error) { return AwaitChange().Prune(), nil },
		"result-error-status": func() (Action, error) {
			return Apply(full).Prune().Status(status), &renamed{ours, "configmap is not ours"}
		},
		"result-declared-requeue": func() (Action, error) {
			return Requeue(time.Minute).Apply(small).Force(), nil
		},
	}
	for name, f := range cases {
		got := run(t, &scriptHost{}, golden(t, "request-minimal"), func(*Context, Object) (Action, error) { return f() })
		equal(t, got, any(goldenValue(t, name)))
	}
}

// renamed is an error with a different text.
type renamed struct {
	error
	text string
}

func (r *renamed) Error() string { return r.text }
func (r *renamed) Unwrap() error { return r.error }

func TestGolden_StatusesBecomeErrors(t *testing.T) {
	call := func(host *scriptHost) (err error) {
		run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
			_, err = ctx.Client().Get(ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "a"}, GetOptions{})
			return AwaitChange(), nil
		})
		return err
	}
	var e *Error
	err := call(&scriptHost{status: StatusDenied, body: golden(t, "status-denied")})
	if !IsDenied(err) || !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	equal(t, *e.Rule, Capability{Resource: "secrets", Verbs: []string{"delete"}, Namespaces: []string{"default"}})
	equal(t, e.Error(), "api_get Secret[default/a]: Denied: the module may not delete secrets in namespace default")
	if !errors.As(call(&scriptHost{status: StatusDenied, body: golden(t, "status-denied-fields")}), &e) {
		t.Fatal("no error")
	}
	equal(t, e.Rule.Fields, []string{"spec.paused"})
	if err := call(&scriptHost{status: StatusUnsupported, body: golden(t, "status-unsupported")}); !IsUnsupported(err) {
		t.Errorf("got %v", err)
	}
}

func TestGolden_OperationsAreWritten(t *testing.T) {
	cm := ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello-content"}
	all := cm
	all.Name = ""
	obj := goldenValue(t, "api-apply")["object"]
	grace := int64(0)
	cases := map[string]func(c *Client) error{
		"cache-get": func(c *Client) error { _, err := (&Cache{c.g}).Get(cm); return err },
		"cache-list": func(c *Client) error {
			_, err := (&Cache{c.g}).List(all, CacheListOptions{LabelSelector: "app=demo", Limit: 500, Continue: "abc"})
			return err
		},
		"api-get": func(c *Client) error { _, err := c.Get(cm, GetOptions{}); return err },
		"api-list": func(c *Client) error {
			_, err := c.List(all, ListOptions{LabelSelector: "app=demo", Limit: 500, Continue: "abc"})
			return err
		},
		"api-patch": func(c *Client) error {
			_, err := c.PatchStatus(cm, JSONPatch(PatchOp{Op: "remove", Path: "/data/a"}), WriteOptions{})
			return err
		},
		"api-apply": func(c *Client) error {
			_, err := c.Apply(obj, ApplyOptions{Force: true, WriteOptions: WriteOptions{FieldManager: "demo", DryRun: true}})
			return err
		},
		"api-delete": func(c *Client) error {
			return c.Delete(cm, DeleteOptions{
				PropagationPolicy: "Foreground", GracePeriodSeconds: &grace,
				Preconditions: Preconditions{UID: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", ResourceVersion: "4711"},
			})
		},
	}
	for name, call := range cases {
		host := &scriptHost{}
		host.answer(t, 0, Map{"kind": "Answer"})
		run(t, host, golden(t, "request-minimal"), func(ctx *Context, _ Object) (Action, error) {
			if err := call(ctx.Client()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return AwaitChange(), nil
		})
		equal(t, host.asked(t), any(goldenValue(t, name)))
	}
}

func TestGolden_ManifestIsWritten(t *testing.T) {
	r := &Reconciler{
		Manifest: Manifest{
			Name: "configmapgenerator", Version: "0.1.0", Concurrency: 8, Finalizer: "examples.wasmctl.dev/configmapgenerator",
			For:  &Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", LabelSelector: "app=demo"},
			Owns: []Watch{{Version: "v1", Kind: "ConfigMap", ControllerOnly: true}},
			Watches: []Watch{
				{Version: "v1", Kind: "Secret", Map: "annotation:examples.wasmctl.dev/for", MetadataOnly: true, Optional: true},
				{
					Version: "v1", Kind: "Namespace", Predicates: []string{"labels"},
					Mapper: func(*Context, WatchEvent) ([]ObjectKey, error) { return nil, nil },
				},
			},
			Capabilities: []Capability{
				{Resource: "configmaps", Verbs: []string{"get", "create", "patch"}},
				{Group: "examples.wasmctl.dev", Resource: "configmapgenerators", Subresources: []string{"status"}, Verbs: []string{"patch"}},
			},
			Limits: &Limits{Memory: 64 << 20, Timeout: 10_000}, Config: map[string]string{"suffix": "-content"},
			Requires: []string{"api_apply"}, Wants: []string{"cache_list"},
		},
		Reconcile:   func(*Context, Object) (Action, error) { return Action{}, nil },
		Finalize:    func(*Context, Object) (Action, error) { return Action{}, nil },
		ErrorPolicy: func(*Context, Object, Failure) Action { return Action{} },
	}
	equal(t, r.problem(), "")
	got, err := wire.Decode(describe(r))
	equal(t, err, nil)
	want := goldenValue(t, "manifest-full")
	want["wants"] = append(want["wants"].([]any), wire.CapOpaque) //nolint:forcetypeassert // the SDK adds its own
	equal(t, got, any(want))

	limited := &Reconciler{Reconcile: r.Reconcile, Manifest: Manifest{Name: "replicas", Capabilities: []Capability{{
		Group: "apps", Resource: "deployments", Verbs: []string{"get", "patch"}, Namespaces: []string{"default"}, Names: []string{"web"},
		Fields: []string{"spec.replicas", `metadata.annotations["example.com/by"]`, "spec.template.spec.containers[name=app].image"},
	}}}}
	got, err = wire.Decode(describe(limited))
	equal(t, err, nil)
	equal(t, got.(map[string]any)["capabilities"], goldenValue(t, "manifest-fields")["capabilities"])

	plain := &Reconciler{Reconcile: r.Reconcile}
	if v := (Value{describe(plain)}); v.Type("hooks") != TypeArray || v.Len("hooks") != 0 {
		t.Error("without functions hooks must be there and empty: the exports are there all the same")
	}
}
