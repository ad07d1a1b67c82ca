package guesttest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var (
	ref    = wasmctl.ObjectRef{APIVersion: "example.com/v1", Kind: "Greeting", Namespace: "default", Name: "hello"}
	cmRef  = wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello"}
	action = wasmctl.AwaitChange()
)

func greeting() wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": "example.com/v1", "kind": "Greeting",
		"metadata": wasmctl.Map{"name": "hello", "namespace": "default"}, "spec": wasmctl.Map{"text": "hi"},
	}
}

func configMap(data wasmctl.Map) wasmctl.Map {
	return wasmctl.Map{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": wasmctl.Map{"name": "hello", "namespace": "default"}, "data": data,
	}
}

// with runs f as the Reconcile of a module that may do everything here.
func with(t *testing.T, host *guesttest.Host, f func(ctx *wasmctl.Context, c *wasmctl.Client)) guesttest.Result {
	t.Helper()
	ran := false
	r := wasmctl.Reconciler{
		Manifest: wasmctl.Manifest{
			Name: "greeter", Config: map[string]string{"a": "default", "b": "default"},
			Capabilities: []wasmctl.Capability{
				{Resource: "configmaps", Verbs: []string{"*"}},
				{Resource: "namespaces", Verbs: []string{"get", "create"}},
				{Group: "example.com", Resource: "greetings", Verbs: []string{"*"}},
				{Group: "example.com", Resource: "greetings", Subresources: []string{"status"}, Verbs: []string{"patch", "update"}},
			},
		},
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			ran = true
			f(ctx, ctx.Client())
			return action, nil
		},
	}
	result := host.Reconcile(r, ref)
	if !ran {
		t.Error("Reconcile was not called")
	}
	return result
}

func status(err error) int {
	if err == nil {
		return 0
	}
	e, ok := err.(*wasmctl.Error) //nolint:errorlint // the client returns it bare
	if !ok {
		return 1
	}
	return e.Status
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestHost_CreateGetUpdateDelete(t *testing.T) {
	host := guesttest.New(t, greeting())
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		_, err := c.Get(cmRef, wasmctl.GetOptions{})
		equal(t, wasmctl.IsNotFound(err), true)

		made, err := c.Create(configMap(wasmctl.Map{"a": "1"}), wasmctl.WriteOptions{})
		equal(t, status(err), 0)
		equal(t, made.UID() != "" && made.ResourceVersion() != "" && made.Generation() == 1, true)
		_, err = c.Create(configMap(nil), wasmctl.WriteOptions{})
		equal(t, wasmctl.IsAlreadyExists(err), true)

		same, err := c.Update(made, wasmctl.WriteOptions{})
		equal(t, []any{same.ResourceVersion(), status(err)}, []any{made.ResourceVersion(), 0})

		changed, err := c.Update(configMap(wasmctl.Map{"a": "2"}), wasmctl.WriteOptions{})
		equal(t, []any{changed.Generation(), changed.UID(), status(err)}, []any{int64(2), made.UID(), 0})
		equal(t, changed.ResourceVersion() != made.ResourceVersion(), true)
		_, err = c.Update(made, wasmctl.WriteOptions{})
		equal(t, wasmctl.IsConflict(err), true)

		err = c.Delete(cmRef, wasmctl.DeleteOptions{Preconditions: wasmctl.Preconditions{UID: "other"}})
		equal(t, wasmctl.IsConflict(err), true)
		equal(t, status(c.Delete(cmRef, wasmctl.DeleteOptions{DryRun: true})), 0)
		equal(t, status(c.Delete(cmRef, wasmctl.DeleteOptions{})), 0)
		equal(t, wasmctl.IsNotFound(c.Delete(cmRef, wasmctl.DeleteOptions{})), true)
	})
	equal(t, host.Get(cmRef).Exists(), false)
	var changes []string
	for _, c := range host.Changes() {
		changes = append(changes, c.Op)
	}
	equal(t, changes, []string{"api_create", "api_update", "api_delete"})
}

func TestHost_RequestsThatAHostRefuses(t *testing.T) {
	host := guesttest.New(t, greeting())
	noNamespace, bare := cmRef, cmRef
	noNamespace.Namespace, bare.Name = "", ""
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		bad := map[string]int{}
		try := func(what string, _ wasmctl.Object, err error) { bad[what] = status(err) }
		get := func(what string, ref wasmctl.ObjectRef, opts wasmctl.GetOptions) {
			o, err := c.Get(ref, opts)
			try(what, o, err)
		}
		get("no namespace", noNamespace, wasmctl.GetOptions{})
		get("no name", bare, wasmctl.GetOptions{})
		get("namespaced namespace", wasmctl.ObjectRef{APIVersion: "v1", Kind: "Namespace", Namespace: "x", Name: "x"}, wasmctl.GetOptions{})
		get("denied", wasmctl.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: "x", Name: "x"}, wasmctl.GetOptions{})
		get("denied subresource", ref, wasmctl.GetOptions{Subresource: "status"})
		get("scale", cmRef, wasmctl.GetOptions{Subresource: "scale"})
		o, err := c.Create(wasmctl.Map{"kind": "ConfigMap"}, wasmctl.WriteOptions{})
		try("no apiVersion", o, err)
		o, err = c.Patch(cmRef, wasmctl.StrategicPatch(wasmctl.Map{}), wasmctl.WriteOptions{})
		try("absent", o, err)
		o, err = c.Patch(ref, wasmctl.StrategicPatch(wasmctl.Map{}), wasmctl.WriteOptions{})
		try("strategic", o, err)
		o, err = c.Update(greeting(), wasmctl.WriteOptions{})
		try("custom resource without a resourceVersion", o, err)
		equal(t, bad, map[string]int{
			"no namespace": -3, "no name": -3, "namespaced namespace": -3, "denied": -2, "denied subresource": -2, "scale": -1,
			"no apiVersion": -3, "absent": 404, "strategic": -1, "custom resource without a resourceVersion": 422,
		})
	})
	equal(t, len(host.Changes()), 0)
}

func TestHost_DeniedSaysWhichCapabilityIsMissing(t *testing.T) {
	host := guesttest.New(t, greeting())
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		err := c.Delete(wasmctl.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "x", Name: "y"}, wasmctl.DeleteOptions{})
		e, ok := err.(*wasmctl.Error) //nolint:errorlint // the client returns it bare
		if !ok || e.Rule == nil {
			t.Fatalf("got %v", err)
		}
		equal(t, *e.Rule, wasmctl.Capability{Group: "apps", Resource: "deployments", Verbs: []string{"delete"}, Namespaces: []string{"x"}})
	})
}

func TestHost_StatusIsASubresource(t *testing.T) {
	host := guesttest.New(t, greeting())
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		o, err := c.PatchStatus(ref, wasmctl.MergePatch(wasmctl.Map{"status": wasmctl.Map{"n": 1}, "spec": wasmctl.Map{"text": "no"}}), wasmctl.WriteOptions{})
		equal(t, []any{o.Int("status", "n"), o.String("spec", "text"), o.Generation(), status(err)}, []any{int64(1), "hi", int64(1), 0})
		o, err = c.Patch(ref, wasmctl.MergePatch(wasmctl.Map{"status": wasmctl.Map{"n": 2}, "spec": wasmctl.Map{"text": "yes"}}), wasmctl.WriteOptions{})
		equal(t, []any{o.Int("status", "n"), o.String("spec", "text"), o.Generation(), status(err)}, []any{int64(1), "yes", int64(2), 0})
		o, err = c.ApplyStatus(wasmctl.Map{
			"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": wasmctl.Map{"name": "hello", "namespace": "default"},
			"status": wasmctl.Map{"m": 3},
		}, wasmctl.ApplyOptions{})
		equal(t, []any{o.Int("status", "n"), o.Int("status", "m"), o.String("spec", "text"), status(err)}, []any{int64(1), int64(3), "yes", 0})
	})
}

func TestHost_PatchesFollowTheirRFCs(t *testing.T) {
	cases := []struct {
		patch wasmctl.Patch
		want  wasmctl.Map // nil: refused
	}{
		{wasmctl.MergePatch(wasmctl.Map{"data": wasmctl.Map{"a": nil, "c": "3"}}), wasmctl.Map{"b": "2", "c": "3"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "test", Path: "/data/a", Value: "1"}, wasmctl.PatchOp{Op: "remove", Path: "/data/a"}), wasmctl.Map{"b": "2"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "remove", Path: "/data/b"}, wasmctl.PatchOp{Op: "test", Path: "/data/a", Value: "2"}), nil},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "add", Path: "/data/x~1y~0z", Value: "3"}), wasmctl.Map{"a": "1", "b": "2", "x/y~z": "3"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "move", From: "/data/a", Path: "/data/c"}), wasmctl.Map{"b": "2", "c": "1"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "copy", From: "/data/a", Path: "/data/c"}), wasmctl.Map{"a": "1", "b": "2", "c": "1"}},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "replace", Path: "/data/none", Value: "3"}), nil},
		{wasmctl.JSONPatch(wasmctl.PatchOp{Op: "replace", Path: "/metadata/name", Value: "other"}), nil},
		{wasmctl.JSONPatch(
			wasmctl.PatchOp{Op: "add", Path: "/data/l", Value: []any{"x"}}, wasmctl.PatchOp{Op: "add", Path: "/data/l/0", Value: "w"},
			wasmctl.PatchOp{Op: "add", Path: "/data/l/-", Value: "y"}, wasmctl.PatchOp{Op: "remove", Path: "/data/l/1"},
		), wasmctl.Map{"a": "1", "b": "2", "l": []any{"w", "y"}}},
	}
	for i, c := range cases {
		host := guesttest.New(t, greeting(), configMap(wasmctl.Map{"a": "1", "b": "2"}))
		before := host.Get(cmRef)
		with(t, host, func(_ *wasmctl.Context, client *wasmctl.Client) {
			_, err := client.Patch(cmRef, c.patch, wasmctl.WriteOptions{})
			equal(t, err != nil, c.want == nil)
		})
		if c.want == nil {
			equal(t, string(host.Get(cmRef).Raw()), string(before.Raw()))
			continue
		}
		var data wasmctl.Map
		if err := host.Get(cmRef).Decode(&data, "data"); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(data, c.want) {
			t.Errorf("case %d: got %v, want %v", i, data, c.want)
		}
	}
}

func TestHost_ApplyOwnsFields(t *testing.T) {
	host := guesttest.New(t, greeting())
	as := func(manager string, force bool) wasmctl.ApplyOptions {
		return wasmctl.ApplyOptions{WriteOptions: wasmctl.WriteOptions{FieldManager: manager}, Force: force}
	}
	data := func() map[string]string { return host.Get(cmRef).StringMap("data") }
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		apply := func(m wasmctl.Map, opts wasmctl.ApplyOptions) int {
			_, err := c.Apply(configMap(m), opts)
			return status(err)
		}
		equal(t, apply(wasmctl.Map{"a": "1", "b": "1"}, as("one", false)), 0)
		version := host.Get(cmRef).ResourceVersion()
		equal(t, apply(wasmctl.Map{"a": "1", "b": "1"}, as("one", false)), 0)
		equal(t, host.Get(cmRef).ResourceVersion(), version) // nothing changed

		equal(t, apply(wasmctl.Map{"b": "1", "c": "2"}, as("two", false)), 0) // shares b
		equal(t, apply(wasmctl.Map{"a": "1"}, as("one", false)), 0)
		equal(t, data(), map[string]string{"a": "1", "b": "1", "c": "2"}) // two still wants b
		equal(t, apply(wasmctl.Map{"c": "2"}, as("two", false)), 0)
		equal(t, data(), map[string]string{"a": "1", "c": "2"})

		equal(t, apply(wasmctl.Map{"a": "9"}, as("two", false)), 409)
		equal(t, data(), map[string]string{"a": "1", "c": "2"})
		equal(t, apply(wasmctl.Map{"a": "9"}, as("two", true)), 0)
		equal(t, data(), map[string]string{"a": "9"})
		equal(t, apply(wasmctl.Map{"a": "1"}, as("one", false)), 409) // it is two's now
	})
}

func TestHost_ApplyMergesKeyedLists(t *testing.T) {
	owner := func(uid string, controller bool) wasmctl.Map {
		return wasmctl.Map{"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid, "controller": controller}
	}
	with1 := func(refs ...any) wasmctl.Map {
		cm := configMap(nil)
		cm["metadata"].(map[string]any)["ownerReferences"] = refs
		return cm
	}
	host := guesttest.New(t, greeting(), with1(owner("first", false)))
	names := func() (list []string) {
		for _, r := range host.Get(cmRef).OwnerReferences() {
			list = append(list, r.UID)
		}
		return list
	}
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		apply := func(o wasmctl.Map) int {
			_, err := c.Apply(o, wasmctl.ApplyOptions{Force: true})
			return status(err)
		}
		equal(t, apply(with1(owner("second", true))), 0)
		equal(t, names(), []string{"first", "second"})
		equal(t, apply(with1(owner("second", true), owner("third", true))), 422) // two controllers
		equal(t, names(), []string{"first", "second"})
		equal(t, apply(configMap(nil)), 0) // leaves its own out
		equal(t, names(), []string{"first"})
	})
}

func TestHost_FinalizersHoldADeletedObject(t *testing.T) {
	held := configMap(nil)
	held["metadata"].(map[string]any)["finalizers"] = []any{"example.com/hold"}
	host := guesttest.New(t, greeting(), held)
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		equal(t, status(c.Delete(cmRef, wasmctl.DeleteOptions{})), 0)
		equal(t, host.Get(cmRef).IsDeleting(), true)
		_, err := c.Patch(cmRef, wasmctl.MergePatch(wasmctl.Map{"metadata": wasmctl.Map{"finalizers": nil}}), wasmctl.WriteOptions{})
		equal(t, status(err), 0)
	})
	equal(t, host.Get(cmRef).Exists(), false)
}

func TestHost_ListSelectsAndPages(t *testing.T) {
	host := guesttest.New(t, greeting())
	for _, name := range []string{"c", "a", "b", "d"} {
		cm := configMap(nil)
		cm["metadata"] = wasmctl.Map{"name": name, "namespace": "default", "labels": wasmctl.Map{"app": "x", "odd": name}}
		host.Add(cm)
	}
	all := wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap"}
	names := func(l wasmctl.List) (s string) {
		for _, o := range l.Items() {
			s += o.Name()
		}
		return s
	}
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		selected := map[string]string{}
		for _, sel := range []string{"", "app=x", "app==y", "odd!=a", "!odd", "odd,odd!=b"} {
			l, err := c.List(all, wasmctl.ListOptions{LabelSelector: sel})
			equal(t, status(err), 0)
			selected[sel] = names(l)
		}
		equal(t, selected, map[string]string{"": "abcd", "app=x": "abcd", "app==y": "", "odd!=a": "bcd", "!odd": "", "odd,odd!=b": "acd"})
		_, err := c.List(all, wasmctl.ListOptions{LabelSelector: "app in (x)"})
		equal(t, status(err), wasmctl.StatusUnsupported)
		byName, err := c.List(all, wasmctl.ListOptions{FieldSelector: "metadata.name=b"})
		equal(t, []any{names(byName), status(err)}, []any{"b", 0})

		page, err := c.List(all, wasmctl.ListOptions{Limit: 3})
		equal(t, []any{names(page), page.Len(), page.Continue() != "", status(err)}, []any{"abc", 3, true, 0})
		page, err = c.List(all, wasmctl.ListOptions{Limit: 3, Continue: page.Continue()})
		equal(t, []any{names(page), page.Continue(), status(err)}, []any{"d", "", 0})
	})
}

func TestHost_DryRunChangesNothing(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.DryRun = true
	with(t, host, func(ctx *wasmctl.Context, c *wasmctl.Client) {
		equal(t, ctx.DryRun(), true)
		o, err := c.Apply(configMap(wasmctl.Map{"a": "1"}), wasmctl.ApplyOptions{})
		equal(t, []any{o.String("data", "a"), status(err)}, []any{"1", 0})
		_, err = c.Patch(ref, wasmctl.MergePatch(wasmctl.Map{"spec": wasmctl.Map{"text": "x"}}), wasmctl.WriteOptions{})
		equal(t, status(err), 0)
	})
	equal(t, []any{host.Get(cmRef).Exists(), host.Get(ref).String("spec", "text"), len(host.Changes())}, []any{false, "hi", 0})
}

func TestHost_ConfigLogTimeAndCancel(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.SetConfig("b", "set")
	host.Advance(time.Minute)
	host.Cancelled = true
	with(t, host, func(ctx *wasmctl.Context, _ *wasmctl.Client) {
		a, errA := ctx.Config("a")
		all, errAll := ctx.AllConfig()
		equal(t, []any{a, errA, all, errAll}, []any{"default", nil, map[string]string{"a": "default", "b": "set"}, nil})
		equal(t, []any{ctx.Cancelled(), ctx.Now().UTC()}, []any{true, time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)})
		ctx.Log().Debug("hidden")
		ctx.Log().Warn("seen", "n", 1)
	})
	equal(t, host.Log(), []guesttest.Line{{Level: wasmctl.LevelWarn, Message: "seen", Attrs: map[string]any{"n": int64(1)}}})
}

// TestHost_FailedRunsAreCountedAndGivenToErrorPolicy: rule 18 (attempts count
// runs and start again after success) and rule 19 (error_policy gets the object,
// the error, the attempt and the time of the first failure).
func TestHost_FailedRunsAreCountedAndGivenToErrorPolicy(t *testing.T) {
	fail := true
	var attempts []int
	r := wasmctl.Reconciler{
		Reconcile: func(ctx *wasmctl.Context, _ wasmctl.Object) (wasmctl.Action, error) {
			attempts = append(attempts, ctx.Attempt())
			if fail {
				return action, wasmctl.WithReason(wasmctl.RetryAfter(&wasmctl.Error{Status: 409}, time.Second), "Busy")
			}
			return action, nil
		},
		ErrorPolicy: func(_ *wasmctl.Context, obj wasmctl.Object, f wasmctl.Failure) wasmctl.Action {
			equal(t, obj.Name(), "hello")
			return wasmctl.Requeue(time.Duration(f.Attempt) * f.After)
		},
	}
	host := guesttest.New(t, greeting())
	start := host.Reconcile(r, ref).Failure.FirstFailed
	host.Advance(time.Hour)
	second := host.Reconcile(r, ref)
	equal(t, *second.Failure, wasmctl.Failure{
		Kind: wasmctl.FailureError, Class: wasmctl.ErrorConflict, Message: ": status 409", Reason: "Busy", After: time.Second,
		Attempt: 2, FirstFailed: start,
	})
	equal(t, second.Action, wasmctl.Requeue(2*time.Second))
	fail = false
	equal(t, host.Reconcile(r, ref), guesttest.Result{})
	fail = true
	host.Reconcile(r, ref)
	equal(t, attempts, []int{1, 2, 3, 1})
}

// TestHost_DecidesAsTheHostDoes: rule 18 (a permanent error waits for a change)
// and rule 19 (error_policy is asked once; without one the error's own time
// counts, else the back-off).
func TestHost_DecidesAsTheHostDoes(t *testing.T) {
	boom := errors.New("boom")
	hour := wasmctl.Requeue(time.Hour)
	cases := []struct {
		err    error
		policy bool
		want   wasmctl.Action
		off    bool
	}{
		{boom, true, hour, false},
		{boom, false, action, true},
		{wasmctl.RetryAfter(boom, time.Second), true, hour, false},
		{wasmctl.RetryAfter(boom, time.Second), false, wasmctl.Requeue(time.Second), false},
		{wasmctl.Permanent(boom), true, action, false},
		{wasmctl.Permanent(boom), false, action, false},
	}
	for _, c := range cases {
		asked := 0
		r := wasmctl.Reconciler{Reconcile: func(*wasmctl.Context, wasmctl.Object) (wasmctl.Action, error) { return action, c.err }}
		if c.policy {
			r.ErrorPolicy = func(*wasmctl.Context, wasmctl.Object, wasmctl.Failure) wasmctl.Action { asked++; return hour }
		}
		got := guesttest.New(t, greeting()).Reconcile(r, ref)
		if got.Action != c.want || got.BackOff != c.off || c.policy != (asked == 1) {
			t.Errorf("%v, policy %v: %+v, asked %d times", c.err, c.policy, got, asked)
		}
	}
}

func TestHost_FailNextFailsOnce(t *testing.T) {
	host := guesttest.New(t, greeting())
	host.FailNext("api_apply", wasmctl.Error{Status: wasmctl.StatusUnavailable, Reason: "Unavailable", Message: "later"})
	with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
		_, err := c.Apply(configMap(nil), wasmctl.ApplyOptions{})
		equal(t, []any{wasmctl.IsUnavailable(err), strings.Contains(err.Error(), "later")}, []any{true, true})
		_, err = c.Apply(configMap(nil), wasmctl.ApplyOptions{})
		equal(t, status(err), 0)
	})
}

// TestHost_RunsStandAlone: two tests at once, and two runs of one test, share
// nothing.
func TestHost_RunsStandAlone(t *testing.T) {
	for range 2 {
		t.Run("same", func(t *testing.T) {
			t.Parallel()
			host := guesttest.New(t, greeting())
			for i := range 50 {
				with(t, host, func(_ *wasmctl.Context, c *wasmctl.Client) {
					_, err := c.Apply(configMap(wasmctl.Map{"i": i}), wasmctl.ApplyOptions{})
					equal(t, status(err), 0)
				})
			}
			equal(t, []any{len(host.Calls()), host.Get(cmRef).Generation()}, []any{50, int64(50)})
		})
	}
}

func TestManifest_IsWhatDescribeSays(t *testing.T) {
	m, err := guesttest.Manifest(wasmctl.Reconciler{Manifest: wasmctl.Manifest{Name: "x"}})
	equal(t, []any{m.String("name"), m.Int("abi"), m.String("sdk"), err}, []any{"x", int64(1), "go/" + wasmctl.Version, nil})
}
