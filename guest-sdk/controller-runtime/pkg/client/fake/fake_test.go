// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the object in the cluster.
func read[T client.Object](t *testing.T, c client.Client, obj T) T {
	t.Helper()
	got, _ := obj.DeepCopyObject().(T)
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), got))
	return got
}

// entry is a ConfigMap of the model.
type entry struct {
	version  int
	value    string
	keeps    bool // has a finalizer
	deleting bool
}

// model describes the fake for ConfigMaps with one value.
type model map[string]*entry

func (m model) write(name, version string, change func(*entry)) string {
	e := m[name]
	switch {
	case e == nil:
		return "NotFound"
	case version != "" && version != strconv.Itoa(e.version):
		return "Conflict"
	}
	change(e)
	e.version++
	if e.deleting && !e.keeps {
		delete(m, name)
	}
	return ""
}

// Initial objects have the version 999, and new ones 1. Each write increments
// it. A write of an old version is a conflict. An object with finalizers is
// gone when its last finalizer is.
func TestFake_KeepsObjectsAsItsModelSays(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		first := configMap("a")
		c := fake.NewClientBuilder().WithObjects(first).Build()
		m := model{"a": {version: 999}}
		for range 30 {
			name := string(rune('a' + r.IntN(3)))
			got, want, what := step(t.Context(), r, c, m, name)
			if got != want {
				t.Fatalf("seed %d: %s %s: %q, want %q", seed, what, name, got, want)
			}
			compare(t, c, m)
		}
	}
}

// step makes one random change to the fake and to the model, and returns both
// answers.
func step(ctx context.Context, r *rand.Rand, c client.Client, m model, name string) (got, want, what string) {
	obj := configMap(name)
	value := fmt.Sprint(r.IntN(100))
	obj.Data = map[string]string{"v": value}
	if r.IntN(2) == 0 && m[name] != nil {
		obj.ResourceVersion = strconv.Itoa(m[name].version - r.IntN(2))
	}
	if m[name] != nil && m[name].deleting {
		stored := &corev1.ConfigMap{}
		_ = c.Get(ctx, client.ObjectKeyFromObject(obj), stored)
		obj.DeletionTimestamp = stored.DeletionTimestamp
	}
	keeps := r.IntN(2) == 0
	if keeps {
		obj.Finalizers = []string{"example.com/keep"}
	}
	var err error
	switch r.IntN(4) {
	case 0:
		what, obj.ResourceVersion = "create", ""
		err = c.Create(ctx, obj)
		if want = "AlreadyExists"; m[name] == nil {
			m[name], want = &entry{version: 1, value: value, keeps: keeps}, ""
		}
	case 1:
		what = "update"
		want = m.write(name, obj.ResourceVersion, func(e *entry) { e.value, e.keeps = value, keeps })
		err = c.Update(ctx, obj)
	case 2:
		what = "patch"
		want = m.write(name, "", func(e *entry) { e.value = value })
		err = c.Patch(ctx, configMap(name), client.RawPatch(types.MergePatchType, []byte(`{"data":{"v":"`+value+`"}}`)))
	case 3:
		what, want = "delete", "NotFound"
		if e := m[name]; e != nil {
			want = ""
			if !e.keeps {
				delete(m, name)
			} else if !e.deleting {
				e.deleting = true
				e.version++
			}
		}
		err = c.Delete(ctx, obj)
	}
	return string(apierrors.ReasonForError(err)), want, what
}

// compare compares all objects with the model.
func compare(t *testing.T, c client.Client, m model) {
	t.Helper()
	var list corev1.ConfigMapList
	must(t, c.List(t.Context(), &list, client.InNamespace("default")))
	if len(list.Items) != len(m) {
		t.Fatalf("%d objects, want %d", len(list.Items), len(m))
	}
	for _, o := range list.Items {
		is := entry{value: o.Data["v"], keeps: len(o.Finalizers) > 0, deleting: o.DeletionTimestamp != nil}
		is.version, _ = strconv.Atoi(o.ResourceVersion)
		if is != *m[o.Name] {
			t.Fatalf("%s is %+v, want %+v", o.Name, is, *m[o.Name])
		}
	}
}

// If the status is a subresource, other writes do not change it, and a write of
// the status changes nothing else. Other kinds have no such subresource.
func TestFake_TheStatusIsASubresource(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(deployment("a"), configMap("a")).Build()
	d := read(t, c, deployment("a"))
	d.Labels, d.Status.Replicas = map[string]string{"a": "b"}, 3
	must(t, c.Update(t.Context(), d))
	if d = read(t, c, d); d.Status.Replicas != 0 || d.Labels["a"] != "b" {
		t.Errorf("after an update: %+v", d)
	}
	d.Labels, d.Status.Replicas = nil, 3
	must(t, c.Status().Update(t.Context(), d))
	if d = read(t, c, d); d.Status.Replicas != 3 || d.Labels["a"] != "b" {
		t.Errorf("after an update of the status: %+v", d)
	}
	before := d.DeepCopy()
	d.Labels, d.Status.Replicas = nil, 4
	must(t, c.Status().Patch(t.Context(), d, client.MergeFrom(before)))
	if d = read(t, c, d); d.Status.Replicas != 4 || d.Labels["a"] != "b" {
		t.Errorf("after a patch of the status: %+v", d)
	}
	if err := c.Status().Update(t.Context(), read(t, c, configMap("a"))); !apierrors.IsNotFound(err) {
		t.Errorf("status of a ConfigMap: %v", err)
	}
}

// A custom kind without a Go type is served, too.
func TestFake_ServesKindsWithoutAType(t *testing.T) {
	app := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("example.com/v1")
		u.SetKind("App")
		u.SetName("a")
		return u
	}
	c := fake.NewClientBuilder().WithStatusSubresource(app()).Build()
	u := app()
	u.Object["spec"], u.Object["status"] = map[string]any{"n": int64(1)}, map[string]any{"n": int64(1)}
	must(t, c.Create(t.Context(), u))
	u.Object["status"] = map[string]any{"n": int64(2)}
	must(t, c.Update(t.Context(), u))
	if u = read(t, c, u); u.Object["status"].(map[string]any)["n"] != int64(1) {
		t.Errorf("the status is %v", u.Object["status"])
	}
	u.SetResourceVersion("")
	if err := c.Update(t.Context(), u); !apierrors.IsConflict(err) {
		t.Errorf("an update without a resourceVersion: %v", err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("AppList")
	if must(t, c.List(t.Context(), list)); len(list.Items) != 1 || list.Items[0].GetKind() != "App" {
		t.Errorf("listed %v", list.Items)
	}
	if err := c.Patch(t.Context(), u, client.RawPatch(types.StrategicMergePatchType, []byte(`{}`))); err == nil {
		t.Error("a strategic patch without the type of the kind")
	}
}

// A list selects by labels, by namespace and by indexes. A field without an
// index is an error, and so is a second index for a field.
func TestFake_ListsByLabelsAndIndexes(t *testing.T) {
	objects := []client.Object{configMap("a"), configMap("b"), configMap("c")}
	objects[0].SetLabels(map[string]string{"app": "x"})
	objects[1].SetLabels(map[string]string{"app": "y"})
	objects[2].SetNamespace("other")
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	builder := fake.NewClientBuilder().WithObjects(objects...).WithIndex(&corev1.ConfigMap{}, "name", byName)
	c := builder.Build()
	for _, test := range []struct {
		want string
		opts []client.ListOption
	}{
		{"a b c", nil},
		{"a b", []client.ListOption{client.InNamespace("default")}},
		{"b", []client.ListOption{client.MatchingLabels{"app": "y"}}},
		{"a b", []client.ListOption{client.HasLabels{"app"}}},
		{"", []client.ListOption{client.MatchingLabelsSelector{}}},
		{"b", []client.ListOption{client.MatchingFields{"name": "b"}}},
		{"", []client.ListOption{client.MatchingFields{"name": "b"}, client.MatchingLabels{"app": "x"}}},
	} {
		var list corev1.ConfigMapList
		must(t, c.List(t.Context(), &list, test.opts...))
		var names []string
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%v: %q, want %q", test.opts, got, test.want)
		}
	}
	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, client.MatchingFields{"uid": "x"}); err == nil || !strings.Contains(err.Error(), "no index with name uid") {
		t.Errorf("a field without an index: %v", err)
	}
	must(t, fake.AddIndex(c, &corev1.ConfigMap{}, "uid", func(o client.Object) []string { return []string{string(o.GetUID())} }))
	must(t, c.List(t.Context(), &list, client.MatchingFields{"uid": "x"}))
	panics(t, "a second index", func() { builder.WithIndex(&corev1.ConfigMap{}, "name", byName) })
	must(t, c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"app": "x"}))
	must(t, c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.MatchingLabelsSelector{}))
	if must(t, c.List(t.Context(), &list)); len(list.Items) != 2 {
		t.Errorf("after DeleteAllOf: %d objects", len(list.Items))
	}
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}

// A builder makes one client. It refuses an object that an API server would
// already have removed.
func TestFake_ABuilderSaysWhatItCannotBuild(t *testing.T) {
	b := fake.NewClientBuilder()
	b.Build()
	panics(t, "a second Build", func() { b.Build() })
	gone := configMap("a")
	gone.DeletionTimestamp = &metav1.Time{}
	panics(t, "an object that would be gone", func() { fake.NewFakeClient(gone) })
	panics(t, "an object twice", func() { fake.NewFakeClient(configMap("a"), configMap("a")) })
}

// A name can be generated; otherwise it is required.
func TestFake_GeneratesNames(t *testing.T) {
	c := fake.NewFakeClient()
	names := map[string]bool{}
	for range 20 {
		obj := configMap("")
		obj.GenerateName = strings.Repeat("x", 100)
		must(t, c.Create(t.Context(), obj))
		if len(obj.Name) != 63 || names[obj.Name] {
			t.Errorf("the name %q", obj.Name)
		}
		names[obj.Name] = true
	}
	for _, err := range []error{c.Create(t.Context(), configMap("")), c.Update(t.Context(), configMap(""))} {
		if !apierrors.IsInvalid(err) {
			t.Errorf("without a name: %v", err)
		}
	}
}

// A write with DryRunAll stores nothing.
func TestFake_DryRunsStoreNothing(t *testing.T) {
	c := fake.NewFakeClient(configMap("a"))
	other := configMap("a")
	other.Data = map[string]string{"a": "b"}
	dry := client.NewDryRunClient(c)
	must(t, dry.Create(t.Context(), configMap("b")))
	must(t, dry.Update(t.Context(), other.DeepCopy()))
	must(t, dry.Patch(t.Context(), other.DeepCopy(), client.MergeFrom(configMap("a"))))
	must(t, dry.Delete(t.Context(), configMap("a")))
	must(t, dry.DeleteAllOf(t.Context(), configMap("")))
	compare(t, c, model{"a": {version: 999}})
}

// Scale, eviction and token have the behavior that programs use.
func TestFake_ServesSubresources(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	c := fake.NewClientBuilder().WithObjects(pod, account, deployment("a")).Build()
	scale := &autoscalingv1.Scale{}
	must(t, c.SubResource("scale").Get(t.Context(), deployment("a"), scale))
	if scale.Spec.Replicas != 1 || scale.ResourceVersion != "999" {
		t.Errorf("the scale is %+v", scale)
	}
	scale.Spec.Replicas = 4
	must(t, c.SubResource("scale").Update(t.Context(), deployment("a"), client.WithSubResourceBody(scale)))
	if d := read(t, c, deployment("a")); *d.Spec.Replicas != 4 {
		t.Errorf("scaled to %d", *d.Spec.Replicas)
	}
	scale.ResourceVersion = "999"
	if err := c.SubResource("scale").Update(t.Context(), deployment("a"), client.WithSubResourceBody(scale)); !apierrors.IsConflict(err) {
		t.Errorf("an old scale: %v", err)
	}
	if err := c.SubResource("scale").Get(t.Context(), pod, scale); !apierrors.IsNotFound(err) {
		t.Errorf("the scale of a Pod: %v", err)
	}
	token := &authenticationv1.TokenRequest{}
	if must(t, c.SubResource("token").Create(t.Context(), account, token)); token.Status.Token == "" {
		t.Error("no token")
	}
	must(t, c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("after the eviction: %v", err)
	}
	if err := c.SubResource("eviction").Create(t.Context(), deployment("a"), &policyv1.Eviction{}); !apierrors.IsNotFound(err) {
		t.Errorf("the eviction of a Deployment: %v", err)
	}
}

// A watch receives each change of its kind and namespace.
func TestFake_Watches(t *testing.T) {
	c := fake.NewFakeClient(configMap("a"))
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
	must(t, err)
	must(t, c.Create(t.Context(), configMap("b")))
	must(t, c.Update(t.Context(), configMap("b")))
	must(t, c.Create(t.Context(), deployment("b")))
	must(t, c.Delete(t.Context(), configMap("a")))
	w.Stop()
	var got []string
	for e := range w.ResultChan() {
		got = append(got, string(e.Type)+" "+e.Object.(client.Object).GetName()) //nolint:forcetypeassert // all objects implement it
	}
	if want := "ADDED b MODIFIED b DELETED a"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// All objects can share one version counter.
func TestFake_CountsVersionsOfAllObjects(t *testing.T) {
	c := fake.NewClientBuilder().WithGlobalResourceVersionCounter().WithObjects(configMap("a")).Build()
	must(t, c.Create(t.Context(), configMap("b")))
	must(t, c.Update(t.Context(), read(t, c, configMap("a"))))
	compare(t, c, model{"a": {version: 3}, "b": {version: 2}})
}

// Interceptor functions are called before the client's methods, including those
// of subresources.
func TestFake_FunctionsComeFirst(t *testing.T) {
	refused := errors.New("refused")
	c := fake.NewClientBuilder().WithObjects(deployment("a")).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refused },
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return refused
		},
	}).Build()
	d := read(t, c, deployment("a"))
	if err := c.Delete(t.Context(), d); !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := c.Status().Update(t.Context(), d); !errors.Is(err, refused) {
		t.Error(err)
	}
	must(t, c.Update(t.Context(), d))
}

// Several goroutines may use the client of a fake.
func TestFake_ManyMayUseIt(t *testing.T) {
	c := fake.NewFakeClient(configMap("a"))
	done := make(chan error)
	for i := range 20 {
		go func() {
			obj := configMap("b" + strconv.Itoa(i))
			done <- errors.Join(c.Create(t.Context(), obj), c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj),
				c.List(t.Context(), &corev1.ConfigMapList{}), c.Delete(t.Context(), obj))
		}()
	}
	for range 20 {
		must(t, <-done)
	}
	compare(t, c, model{"a": {version: 999}})
}
