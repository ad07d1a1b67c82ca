// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

const two = `apiVersion: wasmctl.dev/v1
kind: Grant
capabilities:
- resource: configmaps
  verbs: [get, list]
---
apiVersion: wasmctl.dev/v1
kind: Grant
controller: web
capabilities:
- group: apps
  resource: deployments
  subresources: [scale]
  verbs: ["*"]
  namespaces: [shop]
  names: [web]
  fields: [spec.replicas, 'metadata.annotations["a.b/c"]']
`

func TestParse_EachControllerHasItsDocuments(t *testing.T) {
	f, err := Parse("g.yaml", []byte(two))
	if err != nil {
		t.Fatal(err)
	}
	cm := abi.Capability{Resource: "configmaps", Verbs: []string{"get", "list"}}
	web := abi.Capability{
		Group: "apps", Resource: "deployments", Subresources: []string{"scale"}, Verbs: []string{"*"}, Namespaces: []string{"shop"}, Names: []string{"web"},
		Fields: []string{"spec.replicas", `metadata.annotations["a.b/c"]`},
	}
	for controller, want := range map[string][]abi.Capability{"web": {cm, web}, "other": {cm}} {
		if rules, named := f.Rules(controller); cmp.Diff(want, rules) != "" || !named {
			t.Errorf("%s: %v, %v", controller, rules, named)
		}
	}
	if _, named := f[1:].Rules("other"); named {
		t.Error("a document for web names other")
	}
	if diff := cmp.Diff([]string{"web"}, f.Controllers()); diff != "" {
		t.Error(diff)
	}
}

func TestParse_SaysWhereAndWhatIsWrong(t *testing.T) {
	const head = "apiVersion: wasmctl.dev/v1\nkind: Grant\n"
	for text, want := range map[string]string{
		"":                          "the file is empty",
		"[]":                        "g.yaml:1:1: want a mapping",
		"a: [":                      "line 1",
		head:                        "g.yaml:1:1: capabilities: is missing",
		head + "capabilitis: []":    "g.yaml:3:1: capabilitis: unknown key; did you mean capabilities?",
		head + "capabilities: {}":   "g.yaml:3:15: capabilities: want a list",
		head + "capabilities: [1]":  "g.yaml:3:16: want a mapping",
		head + "capabilities: [{}]": "resource: is missing",
		head + "capabilities: [{resource: pods}]":                                    "verbs: is missing",
		head + "capabilities: [{resource: pods, verbs: [gte]}]":                      "g.yaml:3:41: verbs: gte: unknown key; did you mean get?",
		head + "capabilities: [{resource: pods, verbs: []}]":                         "verbs: is empty: omit it",
		head + "capabilities: [{resource: pods, verbs: [get], names: []}]":           "names: is empty: omit it",
		head + "capabilities: [{resource: pods, verbs: [get], namespaces: ['']}]":    "namespaces: is empty",
		head + "capabilities: [{resource: pods, verbs: [get], fields: [a..b]}]":      `field "a..b"`,
		head + "capabilities: [{resource: '*', verbs: [get]}]":                       "* is not supported",
		head + "capabilities: [{resource: [], verbs: [get]}]":                        "resource: want one value",
		head + "capabilities: [{resource: '*', verbs: [validate, get]}]":             "need a rule of their own",
		head + "capabilities: [{resource: pods, verbs: [default], names: [a]}]":      "do not limit the verbs",
		head + "capabilities: [{resource: pods, verbs: [convert], namespaces: [a]}]": "do not limit the verb convert",
		head + head: "apiVersion: appears twice; separate documents with ---",
		head + "capabilities: []\ncapabilities: []":      "appears twice",
		head + "controller: ~\ncapabilities: []":         "controller: want one value",
		"apiVersion: v1\nkind: Grants\ncapabilities: []": `apiVersion: "v1": want wasmctl.dev/v1`,
		"kind: Grant\ncapabilities: []":                  "apiVersion: is missing",
	} {
		if f, err := Parse("g.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v, %v\nwant ...%s...", text, f, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte(bound("["+digestA+", "+digestB+"]", "pods")))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("? {}\n: {}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse("g.yaml", content)
		if err != nil {
			return
		}
		for i := range file {
			b, err := file[i].Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse("g.yaml", b)
			if err != nil {
				t.Fatalf("%s\nis written as\n%s\nwhich is wrong: %v", content, b, err)
			}
			if diff := cmp.Diff(file[i].Digests, again[0].Digests); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(file[i].Capabilities, again[0].Capabilities); diff != "" && len(file[i].Capabilities) > 0 {
				t.Fatal(diff)
			}
		}
	})
}

var configMaps = kinds.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}

func TestNarrow_WatchesWhereItIsGranted(t *testing.T) {
	rule := func(verbs string, namespaces ...string) abi.Capability {
		return abi.Capability{Resource: "configmaps", Verbs: strings.Split(verbs, ","), Namespaces: namespaces}
	}
	named := rule("*")
	named.Names = []string{"x"}
	for _, tt := range []struct {
		name   string
		watch  Watch
		rules  []abi.Capability
		want   string
		wantOK bool
	}{
		{"nothing", Watch{}, nil, "", false},
		{"everywhere", Watch{}, []abi.Capability{rule("list,watch")}, "", true},
		{"some of everywhere", Watch{}, []abi.Capability{rule("list,watch", "b", "a"), rule("list", "c")}, "a,b", true},
		{"some of some", Watch{Namespaces: []string{"a", "c"}}, []abi.Capability{rule("list,watch", "a", "b")}, "a", true},
		{"none of some", Watch{Namespaces: []string{"c"}}, []abi.Capability{rule("list,watch", "a", "b")}, "", false},
		{"verbs of two rules", Watch{}, []abi.Capability{rule("list", "a"), rule("watch", "a")}, "a", true},
		{"seen, and not to be got", Watch{Seen: true}, []abi.Capability{rule("list,watch")}, "", false},
		{"names", Watch{}, []abi.Capability{named}, "", false},
		{"its name", Watch{Name: "x"}, []abi.Capability{named}, "", true},
		{"another name", Watch{Name: "y"}, []abi.Capability{named}, "", false},
	} {
		tt.watch.Kind = configMaps
		got, ok := tt.watch.Narrow(tt.rules)
		if strings.Join(got, ",") != tt.want || ok != tt.wantOK {
			t.Errorf("%s: %v, %v", tt.name, got, ok)
		}
	}
}

func TestBeyond_SaysWhatIsMissing(t *testing.T) {
	granted := []abi.Capability{{Resource: "configmaps", Verbs: []string{"get", "patch"}, Namespaces: []string{"a", "b"}, Fields: []string{"data", "metadata.labels"}}}
	ask := func(verbs, ns string, fields ...string) []abi.Capability {
		return []abi.Capability{{Resource: "configmaps", Verbs: strings.Split(verbs, ","), Namespaces: strings.Split(ns, ","), Fields: fields}}
	}
	for _, tt := range []struct {
		asked []abi.Capability
		want  string
	}{
		{ask("get", "a,b"), ""},
		{ask("get,patch", "b", "data.x", `metadata.labels["a.b/c"]`), ""},
		{ask("get,list", "a"), "list"},
		{ask("get", "c"), "get"},
		{ask("get,patch", "a"), "patch"},
		{ask("patch", "a", "data", "spec"), "patch"},
		{ask("*", "a"), "get,list,watch,create,update,patch,delete"}, // as it was asked
	} {
		var verbs []string
		for _, c := range Beyond(granted, tt.asked) {
			verbs = append(verbs, kubeapi.SpellOut(c.Verbs)...)
		}
		if got := strings.Join(verbs, ","); got != tt.want {
			t.Errorf("%+v: %s beyond, want %s", tt.asked, got, tt.want)
		}
	}
	if got := Beyond(granted, (&Needs{For: Watch{Kind: configMaps}, Finalizer: true}).Rules()); len(got) != 3 {
		t.Errorf("watches, status and finalizer: %v", got)
	}
}

// The host gets the reconciled object if it has changed before its status is written, also for a module
// that calls nothing. It only lists and watches the other kinds.
func TestAccessRules_TheReconciledObjectCanBeRead(t *testing.T) {
	nodes := configMaps
	nodes.Resource = "nodes"
	needs := Needs{For: Watch{Kind: configMaps}, Watches: []Watch{{Kind: nodes, Seen: true}}}
	for _, c := range needs.AccessRules(func(abi.Op) bool { return false }) {
		if got, want := slices.Contains(c.Verbs, kubeapi.VerbGet), c.Resource == "configmaps"; len(c.Subresources) == 0 && got != want {
			t.Errorf("%+v: get is %v, want %v", c, got, want)
		}
	}
}

func TestRBAC_SaysTheLeastInFewRules(t *testing.T) {
	rules := []abi.Capability{
		{Resource: "configmaps", Verbs: []string{"patch", "get", "create"}},
		{Resource: "secrets", Verbs: []string{"create", "get", "patch"}},
		{Resource: "configmaps", Verbs: []string{"get"}, Namespaces: []string{"shop"}},
		{Resource: "configmaps", Verbs: []string{"delete"}, Namespaces: []string{"shop"}},
		{Group: "apps", Resource: "deployments", Verbs: []string{"patch", "create"}, Namespaces: []string{"shop"}, Names: []string{"web"}, Fields: []string{"spec.replicas"}},
		{Group: "apps", Resource: "deployments", Subresources: []string{"scale", "status"}, Verbs: []string{"update"}, Namespaces: []string{"shop"}},
	}
	b, err := YAML(RBAC(Account{"ops", "web"}, rules)[1:])
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    app.kubernetes.io/managed-by: wasmctl
  name: ops:web
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  - secrets
  verbs:
  - get
  - create
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    app.kubernetes.io/managed-by: wasmctl
  name: ops:web
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ops:web
subjects:
- kind: ServiceAccount
  name: web
  namespace: ops
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  labels:
    app.kubernetes.io/managed-by: wasmctl
  name: web
  namespace: shop
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - delete
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - create
- apiGroups:
  - apps
  resourceNames:
  - web
  resources:
  - deployments
  verbs:
  - get
  - patch
- apiGroups:
  - apps
  resources:
  - deployments/scale
  - deployments/status
  verbs:
  - update
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  labels:
    app.kubernetes.io/managed-by: wasmctl
  name: web
  namespace: shop
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: web
subjects:
- kind: ServiceAccount
  name: web
  namespace: ops
`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}
