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
	cases := map[string]func() (Action, error){
		"result-await":   func() (Action, error) { return AwaitChange(), nil },
		"result-requeue": func() (Action, error) { return Requeue(300 * time.Second), nil },
		"result-error":   func() (Action, error) { return Action{}, &renamed{ours, "configmap is not ours"} },
	}
	for name, f := range cases {
		got := run(t, &scriptHost{}, golden(t, "request-minimal"), func(*Context, Object) (Action, error) { return f() })
		equal(t, got, any(goldenValue(t, name)))
	}
}

// renamed is an error with another text.
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
			Name: "configmapgenerator", Version: "0.1.0", Concurrency: 8,
			For:  &Watch{Group: "examples.wasmctl.dev", Version: "v1", Kind: "ConfigMapGenerator", LabelSelector: "app=demo"},
			Owns: []Watch{{Version: "v1", Kind: "ConfigMap"}},
			Capabilities: []Capability{
				{Resource: "configmaps", Verbs: []string{"get", "create", "patch"}},
				{Group: "examples.wasmctl.dev", Resource: "configmapgenerators", Subresources: []string{"status"}, Verbs: []string{"patch"}},
			},
			Limits: &Limits{Memory: 64 << 20, Timeout: 10_000}, Config: map[string]string{"suffix": "-content"},
			Requires: []string{"api_apply"},
		},
		ErrorPolicy: func(*Context, Object, Failure) Action { return Action{} },
	}
	got, err := wire.Decode(describe(r))
	equal(t, err, nil)
	equal(t, got, any(goldenValue(t, "manifest-full")))

	r.ErrorPolicy = nil
	if v := (Value{describe(r)}); v.Type("hooks") != TypeArray || v.Len("hooks") != 0 {
		t.Error("without an ErrorPolicy hooks must be there and empty: the export is there all the same")
	}
}
