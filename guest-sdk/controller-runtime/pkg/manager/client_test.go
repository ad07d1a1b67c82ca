// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fine fails if the run failed.
func fine(t *testing.T, r guesttest.Result) {
	t.Helper()
	if r.Failure != nil {
		t.Errorf("the run failed: %+v", r.Failure)
	}
}

// TestClient_ReadsWatchedKindsFromTheCache checks that other kinds come from
// the API server. An APIReader always reads from there.
func TestClient_ReadsWatchedKindsFromTheCache(t *testing.T) {
	host, result := in(t, func(ctx context.Context, m ctrl.Manager, c client.Client) {
		key := client.ObjectKey{Namespace: "default", Name: "s"}
		var s corev1.Secret
		must(t, c.Get(ctx, key, &s))
		if s.Kind != "Secret" || s.Type != "x" || s.Labels["a"] != "b" {
			t.Errorf("the Secret is %+v", s)
		}
		var p corev1.Pod
		if err := c.Get(ctx, key, &p); !apierrors.IsNotFound(err) || client.IgnoreNotFound(err) != nil {
			t.Errorf("a Pod that is not there: %v", err)
		}
		must(t, m.GetAPIReader().Get(ctx, key, &s))
		if s.Kind != "" {
			t.Errorf("the kind of an object of an APIReader is %q", s.Kind)
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		must(t, c.Get(ctx, key, u))
		var partial metav1.PartialObjectMetadata
		partial.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		must(t, c.Get(ctx, key, &partial))
		if u.GetLabels()["a"] != "b" || partial.Labels["a"] != "b" {
			t.Errorf("unstructured %v, metadata %v", u, partial)
		}
	}, secret("s", "x", map[string]string{"a": "b"}))
	fine(t, result)
	var ops []string
	for _, c := range host.Calls() {
		ops = append(ops, c.Op)
	}
	if want := []string{"cache_get", "api_get", "api_get", "api_get", "cache_get"}; !slices.Equal(ops, want) {
		t.Errorf("calls %q, want %q", ops, want)
	}
}

// TestClient_ErrorsNameTheKindOrTheResource: as natively, an error of the cache
// names the kind, and one of the API server the resource.
func TestClient_ErrorsNameTheKindOrTheResource(t *testing.T) {
	_, result := in(t, func(ctx context.Context, m ctrl.Manager, c client.Client) {
		for _, of := range []struct {
			from client.Reader
			obj  client.Object
			name string
			want string
		}{
			{c, &corev1.Secret{}, "x", `Secret "x" not found`},
			{c, &corev1.Secret{}, "", `Secret "" not found`},
			{m.GetAPIReader(), &corev1.Secret{}, "x", `secrets "x" not found`},
			{c, &appsv1.Deployment{}, "x", `deployments.apps "x" not found`},
		} {
			err := of.from.Get(ctx, client.ObjectKey{Namespace: "default", Name: of.name}, of.obj)
			if !apierrors.IsNotFound(err) || err.Error() != of.want {
				t.Errorf("%v, want %q", err, of.want)
			}
		}
	})
	fine(t, result)
}

// TestClient_WritesFillTheObject checks that writes update the object with the
// stored one, and that errors are those of apimachinery.
func TestClient_WritesFillTheObject(t *testing.T) {
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		s := secret("new", "x", nil)
		s.TypeMeta = metav1.TypeMeta{}
		must(t, c.Create(ctx, s))
		if s.UID == "" || s.ResourceVersion == "" || s.Kind != "" {
			t.Errorf("created: %+v", s)
		}
		if err := c.Create(ctx, secret("new", "x", nil)); !apierrors.IsAlreadyExists(err) || client.IgnoreAlreadyExists(err) != nil {
			t.Errorf("created twice: %v", err)
		}
		stale := s.DeepCopy()
		s.Data = map[string][]byte{"k": []byte("v")}
		must(t, c.Update(ctx, s))
		if s.ResourceVersion == stale.ResourceVersion || string(s.Data["k"]) != "v" {
			t.Errorf("updated: %+v", s)
		}
		if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
			t.Errorf("an update of an old state: %v", err)
		}
		must(t, c.Delete(ctx, s))
		if err := c.Delete(ctx, s); !apierrors.IsNotFound(err) {
			t.Errorf("deleted twice: %v", err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(s), &corev1.ServiceAccount{}); !apierrors.IsForbidden(err) {
			t.Errorf("a kind without a right: %v", err)
		}
	})
	fine(t, result)
}

// TestClient_Patches: merge patches have only the differences, and with the
// optimistic lock also the base version.
func TestClient_Patches(t *testing.T) {
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		s := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "default", Name: "s"}
		must(t, c.Get(ctx, key, s))
		base := s.DeepCopy()
		s.Labels = map[string]string{"c": "d"}
		data, err := client.MergeFrom(base).Data(s)
		if want := `{"metadata":{"labels":{"a":null,"c":"d"}}}`; err != nil || string(data) != want {
			t.Errorf("%s, %v; want %s", data, err, want)
		}
		must(t, c.Patch(ctx, s, client.MergeFrom(base)))
		if s.Labels["c"] != "d" || s.Labels["a"] != "" || s.ResourceVersion == base.ResourceVersion {
			t.Errorf("patched: %+v", s)
		}
		old := base.DeepCopy()
		old.Annotations = map[string]string{"x": "y"}
		lock := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
		if err := c.Patch(ctx, old, lock); !apierrors.IsConflict(err) {
			t.Errorf("a patch from an old state: %v", err)
		}
		must(t, c.Patch(ctx, s, client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/labels/e","value":"f"}]`))))
		if s.Labels["e"] != "f" {
			t.Errorf("JSON patch: %v", s.Labels)
		}
		applied := secret("s", "x", map[string]string{"g": "h"})
		must(t, c.Patch(ctx, applied, client.Apply, client.FieldOwner("me"), client.ForceOwnership)) //nolint:staticcheck // programs use it
		if applied.Labels["g"] != "h" || applied.Labels["e"] != "f" {
			t.Errorf("applied: %v", applied.Labels)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "s2"}}}
		must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me")))
		if u.GetUID() == "" {
			t.Errorf("applied: %v", u)
		}
	}, secret("s", "x", map[string]string{"a": "b"}))
	fine(t, result)
}

// TestClient_StrategicPatchesMergeListsByKey changes one of two containers.
func TestClient_StrategicPatchesMergeListsByKey(t *testing.T) {
	dep := &appsv1.Deployment{}
	dep.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "1"}, {Name: "b", Image: "1"}}
	base := dep.DeepCopy()
	dep.Spec.Template.Spec.Containers[1].Image = "2"
	data, err := client.StrategicMergeFrom(base).Data(dep)
	want := `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"2","name":"b"}]}}}}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v\nwant %s", data, err, want)
	}
}

// TestClient_Status checks that a write of the status does not change the rest,
// and the reverse.
func TestClient_Status(t *testing.T) {
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
		must(t, c.Create(ctx, d))
		d.Status.Replicas, d.Labels = 3, map[string]string{"a": "b"}
		must(t, c.Status().Update(ctx, d))
		if d.Status.Replicas != 3 || d.Labels != nil {
			t.Errorf("after an update of the status: %+v", d)
		}
		base := d.DeepCopy()
		d.Status.Replicas = 4
		must(t, c.Status().Patch(ctx, d, client.MergeFrom(base)))
		must(t, c.Get(ctx, client.ObjectKeyFromObject(d), d))
		if d.Status.Replicas != 4 {
			t.Errorf("after a patch of the status: %+v", d.Status)
		}
	})
	fine(t, result)
}

// TestClient_Lists covers labels, an index, both, and a selector that matches
// no object. DeleteAllOf deletes the objects of a list.
func TestClient_Lists(t *testing.T) {
	a, b := map[string]string{"l": "1"}, map[string]string{"l": "2"}
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		for want, opts := range map[string][]client.ListOption{
			"p q r ": {client.InNamespace("default")},
			"p q ":   {client.MatchingLabels(a)},
			"q r ":   {client.MatchingFields{"type": "y"}},
			"q ":     {client.MatchingLabels(a), client.MatchingFields{"type": "y"}, client.InNamespace("default")},
			"r ":     {client.MatchingFields{"metadata.name": "r"}},
			"p ":     {client.Limit(1)},
			"":       {client.MatchingLabelsSelector{Selector: labels.Nothing()}},
		} {
			var list corev1.SecretList
			must(t, c.List(ctx, &list, opts...))
			got := ""
			for _, s := range list.Items {
				got += s.Name + " "
			}
			if got != want {
				t.Errorf("%v: %q, want %q", opts, got, want)
			}
		}
		if err := c.List(ctx, &corev1.SecretList{}, client.MatchingFields{"other": "y"}); err == nil {
			t.Error("a field without an index is no error")
		}
		must(t, c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("default"), client.MatchingLabels(a)))
		var rest unstructured.UnstructuredList
		rest.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
		must(t, c.List(ctx, &rest))
		if len(rest.Items) != 1 || rest.Items[0].GetName() != "r" {
			t.Errorf("left: %v", rest.Items)
		}
	}, secret("p", "x", a), secret("q", "y", a), secret("r", "y", b))
	fine(t, result)
}

// TestClient_OptionsOfAWrappedClient checks that a dry-run client stores
// nothing, whatever the options of the call.
func TestClient_OptionsOfAWrappedClient(t *testing.T) {
	host, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		dry := client.WithFieldOwner(client.NewDryRunClient(c), "me")
		must(t, dry.Create(ctx, secret("s", "x", nil)))
		one := client.NewNamespacedClient(c, "default")
		s := secret("t", "x", nil)
		s.Namespace = ""
		must(t, one.Create(ctx, s))
		if s.Namespace = "other"; one.Update(ctx, s) == nil {
			t.Error("an object of another namespace is no error")
		}
	})
	fine(t, result)
	for name, want := range map[string]bool{"s": false, "t": true} {
		if got := host.Get(wasmctl.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: name}).Exists(); got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
}

// TestClient_OutsideOfARunSaysSo covers main, and a goroutine that outlives the
// run.
func TestClient_OutsideOfARunSaysSo(t *testing.T) {
	var kept context.Context
	var c client.Client
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, inner client.Client) { kept, c = ctx, inner })
	fine(t, result)
	if err := c.Get(kept, client.ObjectKey{Name: "a"}, &corev1.Pod{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the run: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Pod{}); err == nil {
		t.Error("outside of a run: no error")
	}
}

// TestReconcile_ResultsAndErrors checks the effect of results and errors in the
// host.
func TestReconcile_ResultsAndErrors(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errors.New("changed"))
	var result reconcile.Result
	var err error
	m := newManager(t, ctrl.Options{})
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(context.Context, reconcile.Request) (reconcile.Result, error) { return result, err })))
	rec, host := declared(t, m), guesttest.New(t, configMap("a"))
	run := func() guesttest.Result {
		return host.Reconcile(rec, wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"})
	}
	for _, want := range []time.Duration{5, 10, 20} {
		result = reconcile.Result{Requeue: true} //nolint:staticcheck // programs use it
		if got := run().Action; got != wasmctl.Requeue(want*time.Millisecond) {
			t.Errorf("Requeue: %v, want %v", got, want*time.Millisecond)
		}
	}
	result = reconcile.Result{RequeueAfter: time.Minute}
	if got := run().Action; got != wasmctl.Requeue(time.Minute) {
		t.Errorf("RequeueAfter: %v", got)
	}
	result = reconcile.Result{Requeue: true} //nolint:staticcheck // programs use it
	if got := run().Action; got != wasmctl.Requeue(5*time.Millisecond) {
		t.Errorf("Requeue after another result: %v", got)
	}
	for want, e := range map[wasmctl.ErrorClass]error{
		wasmctl.ErrorTransient: errors.New("failed"), wasmctl.ErrorConflict: conflict, wasmctl.ErrorPermanent: reconcile.TerminalError(conflict),
	} {
		err = e
		if f := run().Failure; f == nil || f.Class != want {
			t.Errorf("%v: %+v, want class %s", e, f, want)
		}
	}
}
