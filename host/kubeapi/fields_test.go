// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// limited returns the session under a policy that limits writes of a resource to
// fields, and lets it read.
func (s *session) limited(resource string, fields ...string) *session {
	group := ""
	if resource == "deployments" {
		group = "apps"
	}
	rule := abi.Capability{Group: group, Resource: resource, Verbs: []string{"*"}, Fields: fields}
	return &session{API: s.WithPolicy(NewPolicy([]abi.Capability{rule})), t: s.t, ns: s.ns}
}

// TestFields_LimitWhatAWriteTouches by each operation, on a ConfigMap that has
// data that the module may not touch.
func TestFields_LimitWhatAWriteTouches(t *testing.T) {
	s := sharedSession(t)
	may := s.limited("configmaps", "data.mine", "metadata.labels")
	labels := map[string]any{"l": "1"}
	mine := func(value string) map[string]any { return s.cm("shared", map[string]any{"mine": value}) }
	both := func(value string) map[string]any { return s.cm("shared", map[string]any{"mine": value, "theirs": "1"}) }
	patch := func(kind string, p any) map[string]any { return with(s.ref("shared"), "patchType", kind, "patch", p) }
	op := func(op, path string, value any) map[string]any {
		return map[string]any{"op": op, "path": path, "value": value}
	}
	tests := []struct {
		name   string
		op     abi.Op
		req    map[string]any
		denied string // the field that is named
	}{
		{"create within", abi.OpAPICreate, map[string]any{"object": inMeta(s.cm("new", map[string]any{"mine": "1"}), "labels", labels, "creationTimestamp", nil)}, ""},
		{"create beyond", abi.OpAPICreate, map[string]any{"object": s.cm("new2", map[string]any{"theirs": "1"})}, `"data.theirs"`},
		{"apply within", abi.OpAPIApply, map[string]any{"object": inMeta(mine("2"), "labels", labels)}, ""},
		{"apply beyond", abi.OpAPIApply, map[string]any{"object": both("3"), "force": true}, `"data.theirs"`},
		{"apply of annotations", abi.OpAPIApply, map[string]any{"object": inMeta(mine("3"), "annotations", map[string]any{"a.b/c": "x"})}, `metadata.annotations[\"a.b/c\"]`},
		{"update within", abi.OpAPIUpdate, map[string]any{"object": inMeta(both("4"), "labels", labels)}, ""},
		{"update that drops", abi.OpAPIUpdate, map[string]any{"object": mine("5")}, `"data.theirs"`},
		{"update that changes", abi.OpAPIUpdate, map[string]any{"object": with(both("5"), "data", map[string]any{"mine": "5", "theirs": "2"})}, `"data.theirs"`},
		{"merge patch within", abi.OpAPIPatch, patch("merge", map[string]any{"data": map[string]any{"mine": "6"}}), ""},
		{"merge patch beyond", abi.OpAPIPatch, patch("merge", map[string]any{"data": map[string]any{"theirs": nil}}), `"data.theirs"`},
		{"merge patch of it all", abi.OpAPIPatch, patch("merge", map[string]any{"data": nil}), `"data"`},
		{"json patch within", abi.OpAPIPatch, patch("json", []any{op("test", "/data/theirs", "1"), op("replace", "/data/mine", "7")}), ""},
		{"json patch beyond", abi.OpAPIPatch, patch("json", []any{op("replace", "/data", map[string]any{"mine": "8"})}), `"data.theirs"`},
		{"json patch that moves", abi.OpAPIPatch, patch("json", []any{map[string]any{"op": "move", "from": "/data/theirs", "path": "/data/mine"}}), `"data.theirs"`},
		{"json patch of the managers", abi.OpAPIPatch, patch("json", []any{op("replace", "/metadata/managedFields", []any{})}), "metadata.managedFields"},
		{"merge patch of the managers", abi.OpAPIPatch, patch("merge", map[string]any{"metadata": map[string]any{"managedFields": []any{}}}), "metadata.managedFields"},
		{"strategic patch within", abi.OpAPIPatch, patch("strategic", map[string]any{"data": map[string]any{"mine": "9"}}), ""},
		{"strategic patch beyond", abi.OpAPIPatch, patch("strategic", map[string]any{"data": map[string]any{"$patch": "replace", "mine": "9"}}), `"data.theirs"`},
		{"apply in another's name", abi.OpAPIApply, map[string]any{"object": mine("9"), "force": true, "fieldManager": "they"}, ""},
		{"delete", abi.OpAPIDelete, s.ref("shared"), ""},
	}
	s.ok(abi.OpAPIApply, map[string]any{"object": s.cm("shared", map[string]any{"theirs": "1"}), "fieldManager": "they"})
	for _, tt := range tests {
		before := s.stored()
		if tt.denied == "" {
			may.ok(tt.op, tt.req)
			if tt.name != "delete" && s.stored() == before {
				t.Errorf("%s: was not carried out", tt.name)
			}
			continue
		}
		body := may.fails(abi.StatusDenied, tt.denied, tt.op, tt.req)
		if got, _ := at(body, "rule", "fields", 0).(string); got == "" && tt.denied != "metadata.managedFields" {
			t.Errorf("%s: rule %v", tt.name, body["rule"])
		}
		if after := s.stored(); after != before {
			t.Errorf("%s: was carried out:\n%s", tt.name, after)
		}
	}
}

// TestFields_AManagerOfTheModuleIsOneOfTheController: each limited write in another's
// name is sent under one below the controller's, so that what that one owns stays
// there. Other writes keep the name.
func TestFields_AManagerOfTheModuleIsOneOfTheController(t *testing.T) {
	s := sharedSession(t)
	theirs := s.ok(abi.OpAPIApply, map[string]any{"object": s.cm("owned", map[string]any{"theirs": "1"}), "fieldManager": "they"})
	may, all := s.limited("configmaps", "data.mine"), s.limited("configmaps")
	for i, name := range []string{"they", "wasmctl/tester", "wasmctl/tester/2", "wasmctl/testers", ""} {
		want := name
		switch name {
		case "they", "wasmctl/testers":
			want = "wasmctl/tester/" + name
		case "":
			want = "wasmctl/tester"
		}
		object := s.cm("owned", map[string]any{"mine": strconv.Itoa(i)})
		patch := with(s.ref("owned"), "patchType", "merge", "patch", map[string]any{"data": map[string]any{"mine": "p" + strconv.Itoa(i)}})
		update := s.cm("owned", map[string]any{"theirs": "1", "mine": "u" + strconv.Itoa(i)})
		create := map[string]any{"object": inMeta(s.cm("", map[string]any{"mine": "1"}), "generateName", "a-")}
		for op, req := range map[abi.Op]map[string]any{
			abi.OpAPIApply: {"object": object, "force": true}, abi.OpAPIUpdate: {"object": update}, abi.OpAPIPatch: patch, abi.OpAPICreate: create,
		} {
			if got := managers(may.ok(op, with(req, "fieldManager", name))); !slices.Contains(strings.Split(got, ","), want) {
				t.Errorf("%s as %q: managers %s", op, name, got)
			}
		}
	}
	got := s.ok(abi.OpAPIGet, s.ref("owned"))
	if fields := appliedBy(got, "they", ""); fmt.Sprint(fields) != fmt.Sprint(appliedBy(theirs, "they", "")) {
		t.Errorf("they own %v", fields)
	}
	if m := managers(all.ok(abi.OpAPICreate, map[string]any{"object": s.cm("free", map[string]any{"k": "1"}), "fieldManager": "they"})); m != "they" {
		t.Errorf("without a limit: managers %s", m)
	}
}

// TestFields_OfOneItemOfAList: an apply of one container does not change the others if the API
// server identifies the items of the list, and is denied if it would replace the list.
func TestFields_OfOneItemOfAList(t *testing.T) {
	s := sharedSession(t)
	deployment := func(containers ...any) map[string]any {
		labels := map[string]any{"app": "x"}
		return map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": s.ns},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": containers}},
			},
		}
	}
	container := func(name, image string) map[string]any { return map[string]any{"name": name, "image": image} }
	s.ok(abi.OpAPIApply, map[string]any{"object": deployment(container("app", "a:1"), container("side", "s:1")), "fieldManager": "they"})
	may := s.limited("deployments", "spec.template.spec.containers[name=app].image", "metadata.labels")
	only := func(c ...any) map[string]any {
		o := deployment(c...)
		o["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": c}}}
		return o
	}
	made := may.ok(abi.OpAPIApply, map[string]any{"object": only(container("app", "a:2")), "force": true})
	if at(made, "spec", "template", "spec", "containers", 0, "image") != "a:2" || at(made, "spec", "template", "spec", "containers", 1, "image") != "s:1" {
		t.Errorf("containers: %v", at(made, "spec", "template", "spec", "containers"))
	}
	may.fails(abi.StatusDenied, "containers[name=side].image", abi.OpAPIApply, map[string]any{"object": only(container("side", "s:2")), "force": true})
	ref := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": s.ns, "name": "web", "patchType": "json"}
	may.ok(abi.OpAPIPatch, with(ref, "patch", []any{map[string]any{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "a:3"}}))
	may.fails(abi.StatusDenied, "containers[name=side].image", abi.OpAPIPatch,
		with(ref, "patch", []any{map[string]any{"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "a:3"}}))
	may.fails(abi.StatusDenied, `spec.template.spec.containers`, abi.OpAPIPatch,
		with(ref, "patchType", "merge", "patch", only(container("app", "a:4"))))
}

// TestFields_OfDeclaredResults: the host's own owner reference needs no right. The module's fields
// do.
func TestFields_OfDeclaredResults(t *testing.T) {
	d := newDeclarer(t)
	rules := []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"*"}, Fields: []string{"data.k"}},
		{Group: "kubeapi.wasmctl.dev", Resource: "sprockets", Subresources: []string{"status"}, Verbs: []string{"patch"}, Fields: []string{"status.size"}},
	}
	d.cfg.Policy = NewPolicy(rules)
	result := d.result(configMap("a", "1"))
	result.Status = msg(t, map[string]any{"size": 2})
	d.declare(result)
	bad := d.result(inMeta(configMap("a", "2"), "labels", map[string]any{"x": "y"}))
	if _, sent := d.refuse(abi.ErrorPermanent, "Denied", `"metadata.labels.x"`, bad); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
	badStatus := d.result()
	badStatus.Status = msg(t, map[string]any{"size": 2, "other": 1})
	d.refuse(abi.ErrorPermanent, "Denied", `"status.other"`, badStatus)
}

// TestFields_HoldForTheVersionThatWasLookedAt: a write that was compared with
// an object which then changes is a conflict, and not carried out.
func TestFields_HoldForTheVersionThatWasLookedAt(t *testing.T) {
	s := sharedSession(t)
	may := s.limited("configmaps", "data.mine")
	old := s.ok(abi.OpAPICreate, map[string]any{"object": s.cm("racy", map[string]any{"theirs": "1"})})
	s.ok(abi.OpAPIPatch, with(s.ref("racy"), "patchType", "merge", "patch", map[string]any{"data": map[string]any{"theirs": "2"}}))
	old["data"] = map[string]any{"theirs": "2", "mine": "1"}
	may.fails(409, "the object has been modified", abi.OpAPIUpdate, map[string]any{"object": old})
}

// FuzzFields: no request makes the check fail.
func FuzzFields(f *testing.F) {
	f.Add("data.a", []byte{0x80}, uint8(0))
	f.Fuzz(func(t *testing.T, field string, body []byte, op uint8) {
		api := offlineAPI(t, NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"*"}, Fields: []string{field}}}))
		value, err := abi.DecodeValue(body)
		if err != nil {
			return
		}
		req := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}
		ops := []abi.Op{abi.OpAPICreate, abi.OpAPIUpdate, abi.OpAPIApply, abi.OpAPIPatch}
		which := ops[int(op)%len(ops)]
		if which == abi.OpAPIPatch {
			req["patch"], req["patchType"] = value, []string{"merge", "json", "strategic"}[int(op/8)%3]
		} else {
			req["object"] = value
		}
		if got := api.Call(t.Context(), which, msg(t, req)); got.Status == abi.StatusOK || strings.Contains(string(got.Body), "BUG") {
			t.Errorf("%s: %v", which, got.Status)
		}
	})
}
