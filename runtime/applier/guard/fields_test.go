// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

func stringsOf(fields []Field) []string {
	var lines []string
	for _, f := range fields {
		lines = append(lines, f.String())
	}
	return lines
}

// managed is an object with two managers: one owns all of .spec.list, which it treats as one value, and the items of
// .spec.ports by key.
func managed(spec string) string {
	return `{"metadata":{"resourceVersion":"` + spec[1:2] + `","generation":` + strconv.Itoa(len(spec)) + `,"managedFields":[
		{"manager":"hpa","operation":"Update","fieldsV1":{"f:spec":{"f:replicas":{}}}},
		{"manager":"broken","operation":"Update","fieldsV1":{"x":{}}},
		{"manager":"wasmctl/web","operation":"Apply","fieldsV1":{"f:spec":{"f:list":{},"f:image":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}}]},
		"spec":{` + spec + `}}`
}

func TestCompare_NamesFieldsAndManagers(t *testing.T) {
	w := &abi.Write{Group: "example.com", Resource: "webs", Key: abi.Key{Namespace: "default", Name: "a"}}
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing but what every write changes": {`"a":1`, `"a":1`, nil},
		"a field of somebody":                  {`"replicas":3`, `"replicas":5`, []string{".spec.replicas (hpa)"}},
		"a field of nobody":                    {`"new":{"a":1}`, `"b":2`, []string{".spec.b", ".spec.new"}},
		"a list that is one value":             {`"list":["a","b"]`, `"list":["a","c"]`, []string{".spec.list (wasmctl/web)"}},
		"a list of a wrong shape":              {`"ports":[80]`, `"ports":"x"`, []string{".spec.ports (wasmctl/web)"}},
		"an item of a list, by key": {
			`"ports":[{"port":443,"protocol":"TCP"},{"port":80,"protocol":"TCP","name":"a"}]`, `"ports":[{"port":80,"protocol":"TCP","name":"b"},{"port":443,"protocol":"TCP"}]`,
			[]string{`.spec.ports[port=80,protocol="TCP"].name (wasmctl/web)`},
		},
		"items that come and go": {
			`"ports":[{"port":443,"protocol":"TCP"},7]`, `"ports":[{"port":80,"protocol":"TCP"}]`,
			[]string{`.spec.ports[port=443,protocol="TCP"]`, ".spec.ports[1]", `.spec.ports[port=80,protocol="TCP"] (wasmctl/web)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fields, err := Compare(w, []byte(managed(c.before)), []byte(managed(c.after)))
			var want []string
			for _, line := range c.want {
				want = append(want, "webs.example.com default/a "+line)
			}
			if diff := cmp.Diff(want, stringsOf(fields)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestCompare_IsBoundedAndRefusesWhatIsNoObject(t *testing.T) {
	var many []string
	for i := range 5 * MaxFields {
		many = append(many, `"f`+strings.Repeat("x", i)+`":1`)
	}
	fields, err := Compare(&abi.Write{Resource: "pods"}, []byte("{}"), []byte("{"+strings.Join(many, ",")+"}"))
	if len(fields) != MaxFields || err != nil {
		t.Errorf("%d fields, %v", len(fields), err)
	}
	for _, bad := range []string{"", "[]", `{"metadata":7}`} {
		if _, err := Compare(&abi.Write{Resource: "pods", Key: abi.Key{Name: "a"}}, []byte(bad), []byte("{}")); err == nil || !strings.Contains(err.Error(), "pods a: before the write") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A field was changed back if it is not as the last run left it: this distinguishes a fight from progress.
func TestChangedBack_TellsAFightFromProgress(t *testing.T) {
	at := func(path string, before, after uint64) []Field {
		return []Field{{Object: "o", Path: path, before: before, after: after}}
	}
	for name, c := range map[string]struct {
		last, this []Field
		want       bool
	}{
		"back and forth": {at(".a", 1, 2), at(".a", 1, 2), true},
		"removed":        {at(".a", 0, 2), at(".a", 0, 2), true},
		"forward":        {at(".a", 1, 2), at(".a", 2, 3), false},
		"another field":  {at(".a", 1, 2), at(".b", 1, 2), false},
		"not known":      {nil, at(".a", 1, 2), false},
	} {
		if got := changedBack(c.last, c.this); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzCompare: no two objects make it panic, and an object does not differ from itself.
func FuzzCompare(f *testing.F) {
	f.Add(managed(`"ports":[{"port":80,"protocol":"TCP"}]`), managed(`"ports":[]`))
	f.Add(`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"v:1":{},"i:0":{}}}}]},"a":[1,{"b":null}]}`, `{"a":[]}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		fields, err := Compare(&abi.Write{}, []byte(before), []byte(after))
		if before == after && err == nil && len(fields) > 0 {
			t.Errorf("differs from itself in %v", stringsOf(fields))
		}
		if len(fields) > MaxFields {
			t.Errorf("%d fields", len(fields))
		}
	})
}

// The result for two managers that fight over a deployment on the real API server.
func TestCompare_OfTheRealAPIServer(t *testing.T) {
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	client, err := dynamic.NewForConfig(devclustertest.Admin(t))
	if err != nil {
		t.Fatal(err)
	}
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(ns)
	apply := func(manager string, spec map[string]any) *unstructured.Unstructured {
		t.Helper()
		o, err := deployments.Apply(t.Context(), "web", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": spec,
		}}, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	spec := func(image string, replicas int64) map[string]any {
		return map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "app", "image": image, "ports": []any{map[string]any{"containerPort": int64(80)}},
				}}},
			},
		}
	}
	ours := apply("wasmctl/web", spec("v1", 3))
	edited := ours.DeepCopy()
	_ = unstructured.SetNestedField(edited.Object, int64(5), "spec", "replicas")
	containers, _, _ := unstructured.NestedSlice(edited.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = "v2"
	_ = unstructured.SetNestedSlice(edited.Object, containers, "spec", "template", "spec", "containers")
	theirs, err := deployments.Update(t.Context(), edited, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Fatal(err)
	}
	again := apply("wasmctl/web", spec("v1", 3))
	before, err1 := theirs.MarshalJSON()
	after, err2 := again.MarshalJSON()
	w := &abi.Write{Group: "apps", Resource: "deployments", Key: abi.Key{Namespace: "default", Name: "web"}}
	fields, err := Compare(w, before, after)
	if err != nil || err1 != nil || err2 != nil {
		t.Fatal(err, err1, err2)
	}
	want := []string{
		"deployments.apps default/web .spec.replicas (kubectl-edit, wasmctl/web)",
		`deployments.apps default/web .spec.template.spec.containers[name="app"].image (kubectl-edit, wasmctl/web)`,
	}
	if diff := cmp.Diff(want, stringsOf(fields)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first, err := ours.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if last, err := Compare(w, []byte("{}"), first); err != nil || len(last) == 0 {
		t.Errorf("of a new object: %v, %v", last, err)
	}
}
