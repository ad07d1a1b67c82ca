// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// step is one request of a script. In its path and its body, $NS, $RV and $UID stand for
// the namespace, and for the version and the uid of the object in the last answer.
type step struct {
	method, path string
	kind         string // type of the body: json, merge, strategic, apply; empty for an object
	body         string
}

const (
	cms     = "/api/v1/namespaces/$NS/configmaps"
	gadgets = "/apis/memapi.wasmctl.dev/v1/namespaces/$NS/gadgets"
	cm      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"%s},"data":{%s}}`
	gadget  = `{"apiVersion":"memapi.wasmctl.dev/v1","kind":"Gadget","metadata":{"name":"g"%s},%s}`
)

func cmOf(meta, data string) string     { return fmt.Sprintf(cm, meta, data) }
func gadgetOf(meta, rest string) string { return fmt.Sprintf(gadget, meta, rest) }

// scripts are compared with a real API server, answer by answer.
var scripts = map[string][]step{
	"create update conflict delete": {
		{"GET", cms + "/a", "", ""},
		{"POST", cms + "?fieldManager=m", "", cmOf("", `"k":"1"`)},
		{"POST", cms + "?fieldManager=m", "", cmOf("", `"k":"1"`)},
		{"GET", cms + "/a", "", ""},
		{"PUT", cms + "/a?fieldManager=m", "", cmOf(`,"resourceVersion":"$RV"`, `"k":"2"`)},
		{"PUT", cms + "/a?fieldManager=m", "", cmOf(`,"resourceVersion":"1"`, `"k":"3"`)},
		{"PUT", cms + "/a?fieldManager=m", "", cmOf(`,"uid":"other"`, `"k":"3"`)},
		{"PUT", cms + "/a?fieldManager=m", "", cmOf("", `"k":"2"`)}, // no change
		{"PUT", cms + "/b?fieldManager=m", "", cmOf("", `"k":"2"`)},
		{"DELETE", cms + "/a", "", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"other"}}`},
		{"DELETE", cms + "/a?dryRun=All", "", ""},
		{"DELETE", cms + "/a", "", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"$UID"}}`},
		{"DELETE", cms + "/a", "", ""},
	},
	"patches": {
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"data":{"k":"1"}}`},
		{"POST", cms + "?fieldManager=m", "", cmOf(`,"labels":{"a":"b"}`, `"k":"1","l":"2"`)},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"data":{"k":null,"n":"3"}}`},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"data":{"n":"3"}}`},
		{"PATCH", cms + "/a?fieldManager=m", "json", `[{"op":"test","path":"/data/n","value":"3"},{"op":"add","path":"/data/o","value":"4"}]`},
		{"PATCH", cms + "/a?fieldManager=m", "json", `[{"op":"test","path":"/data/n","value":"no"}]`},
		{"PATCH", cms + "/a?fieldManager=m", "json", `[{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/finalizers","value":["x/y"]}]`},
		{"PATCH", cms + "/a?fieldManager=m", "json", `[{"op":"remove","path":"/data/missing"}]`},
		{"PATCH", cms + "/a?fieldManager=m", "strategic", `{"metadata":{"finalizers":["x/z"]},"data":{"$patch":"replace","p":"5"}}`},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"data":{"n":7}}`},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"unknown":{"n":"7"},"metadata":{"labels":{},"unknown":3}}`},
		{"PATCH", cms + "/a?fieldManager=three", "apply", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"unknown":1}`},
		{"PATCH", cms + "/a?fieldManager=m&dryRun=All", "merge", `{"data":{"n":"9"}}`},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"metadata":{"resourceVersion":"1"},"data":{"n":"9"}}`},
		{"GET", cms + "/a", "", ""},
	},
	"finalizers": {
		{"POST", cms + "?fieldManager=m", "", cmOf(`,"finalizers":["x/y"]`, "")},
		{"DELETE", cms + "/a", "", ""},
		{"DELETE", cms + "/a", "", ""},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"metadata":{"finalizers":["x/y","x/z"]}}`},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"data":{"still":"writable"}}`},
		{"PATCH", cms + "/a?fieldManager=m", "merge", `{"metadata":{"finalizers":null}}`},
		{"GET", cms + "/a", "", ""},
	},
	"apply": {
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"k":"1","l":"2"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"k":"1","l":"2"`)}, // no change
		{"PATCH", cms + "/a?fieldManager=two", "apply", cmOf("", `"k":"other"`)},
		{"PATCH", cms + "/a?fieldManager=two", "apply", cmOf("", `"m":"3"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"k":"1"`)}, // gives up l
		{"PATCH", cms + "/a?fieldManager=two&force=true", "apply", cmOf("", `"k":"other","m":"3"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"k":"other"`)}, // agrees
		{"PATCH", cms + "/a", "apply", cmOf("", `"k":"1"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf(`,"resourceVersion":"1"`, `"k":"other"`)},
		{"PUT", cms + "/a?fieldManager=edit", "", cmOf("", `"k":"edited"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"k":"1"`)},
		{"PATCH", cms + "/b?fieldManager=one", "apply", strings.Replace(cmOf(`,"uid":"other"`, `"k":"1"`), `"a"`, `"b"`, 1)},
		{"GET", cms + "/a", "", ""},
	},
	"apply over what others made": {
		{"POST", cms + "?fieldManager=kubectl", "", cmOf("", `"k":"theirs"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"k":"mine"`)},
		{"PATCH", cms + "/a?fieldManager=one&force=true", "apply", cmOf("", `"k":"mine"`)},
		{"PATCH", cms + "/a?fieldManager=one", "apply", cmOf("", `"other":"x"`)},
	},
	"owners": {
		{"POST", cms + "?fieldManager=m", "", cmOf(`,"ownerReferences":[{"apiVersion":"none.wasmctl.dev/v1","kind":"Pod","name":"p","uid":"1","controller":true}]`, "")},
		{"PATCH", cms + "/a?fieldManager=one&force=true", "apply", cmOf(`,"ownerReferences":[{"apiVersion":"none.wasmctl.dev/v1","kind":"Pod","name":"q","uid":"2","controller":true}]`, "")},
		{"PATCH", cms + "/a?fieldManager=one&force=true", "apply", cmOf(`,"ownerReferences":[{"apiVersion":"none.wasmctl.dev/v1","kind":"Pod","name":"q","uid":"2"}]`, "")},
		{"PATCH", cms + "/a?fieldManager=one&force=true", "apply", cmOf("", "")},
	},
	"custom resource": {
		{"POST", gadgets + "?fieldManager=m", "", gadgetOf("", `"spec":{"size":1,"words":["a"]},"status":{"ready":true}`)},
		{"PATCH", gadgets + "/g?fieldManager=m", "merge", `{"spec":{"size":2},"status":{"ready":true}}`},
		{"PATCH", gadgets + "/g/status?fieldManager=m", "merge", `{"spec":{"size":3},"status":{"ready":true}}`},
		{"PATCH", gadgets + "/g/status?fieldManager=s", "apply", gadgetOf("", `"status":{"observedGeneration":2}`)},
		{"PATCH", gadgets + "/g/status?fieldManager=s", "apply", gadgetOf("", `"status":{"observedGeneration":2}`)},
		{"PATCH", gadgets + "/g?fieldManager=one", "apply", gadgetOf("", `"spec":{"parts":[{"name":"x","count":1}],"tags":["t"]}`)},
		{"PATCH", gadgets + "/g?fieldManager=two", "apply", gadgetOf("", `"spec":{"parts":[{"name":"y","count":2}],"tags":["u"]}`)},
		{"PATCH", gadgets + "/g?fieldManager=two", "apply", gadgetOf("", `"spec":{"parts":[{"name":"x","count":2}],"words":["b"]}`)},
		{"PATCH", gadgets + "/g?fieldManager=one", "apply", gadgetOf(`,"labels":{"a":"b"}`, `"spec":{"tags":["t"]}`)},
		{"PATCH", gadgets + "/g?fieldManager=m", "merge", `{"spec":{"unknown":1},"unknown":2,"metadata":{"labels":{},"unknown":3}}`},
		{"PATCH", gadgets + "/g?fieldManager=three", "apply", gadgetOf("", `"spec":{"unknown":1}`)},
		{"PATCH", gadgets + "/g?fieldManager=m", "strategic", `{"spec":{"size":2}}`},
		{"GET", gadgets + "/g/scale", "", ""},
		{"PUT", gadgets + "/g/status?fieldManager=m", "", gadgetOf(`,"labels":{"no":"no"}`, `"status":{"ready":false}`)},
		{"PATCH", gadgets + "/h/status?fieldManager=s", "apply", strings.Replace(gadgetOf("", `"status":{"ready":true}`), `"g"`, `"h"`, 1)},
		{"DELETE", gadgets + "/g", "", ""},
		{"GET", gadgets + "/g", "", ""},
	},
	"lists": {
		{"POST", cms + "?fieldManager=m", "", cmOf(`,"labels":{"tier":"web"}`, "")},
		{"POST", cms + "?fieldManager=m", "", strings.Replace(cmOf(`,"labels":{"tier":"db"}`, ""), `"a"`, `"b"`, 1)},
		{"GET", cms + "?labelSelector=tier%3Dweb", "", ""},
		{"GET", cms + "?fieldSelector=metadata.name%3Db", "", ""},
		{"GET", cms + "?labelSelector=tier%20in", "", ""},
		{"GET", cms + "?limit=1&labelSelector=tier", "", ""},
		{"GET", "/apis/memapi.wasmctl.dev/v1/namespaces/$NS/nonsense", "", ""},
	},
}

// TestServer_AnswersAsTheRealOneDoes plays each script against this server and
// against a real API server.
func TestServer_AnswersAsTheRealOneDoes(t *testing.T) {
	crdYAML, err := os.ReadFile("testdata/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := devclustertest.Shared(t)
	devclustertest.Apply(t, c, crdYAML)
	real, err := rest.TransportFor(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	js, err := sigsyaml.YAMLToJSON(crdYAML)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := ParseCRD(js)
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			ns := devclustertest.Namespace(t, c)
			theirs := &player{t: t, transport: real, base: c.URL(), ns: ns}
			ours := &player{t: t, transport: New(Config{Kinds: kinds}), base: "http://in-memory", ns: ns}
			for i, st := range script {
				want, got := theirs.play(st), ours.play(st)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%d: %s %s %s (-real +in memory)\n%s", i+1, st.method, st.path, st.body, diff)
				}
			}
		})
	}
}

// player sends requests to one API server.
type player struct {
	t         *testing.T
	transport http.RoundTripper
	base, ns  string
	rv, uid   string
}

var contentTypes = map[string]string{
	"": "application/json", "json": "application/json-patch+json", "merge": "application/merge-patch+json",
	"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
}

// play returns the comparable parts of an answer.
func (p *player) play(st step) map[string]any {
	p.t.Helper()
	fill := strings.NewReplacer("$NS", p.ns, "$RV", p.rv, "$UID", p.uid).Replace
	var body io.Reader
	if st.body != "" {
		body = strings.NewReader(fill(st.body))
	}
	req, err := http.NewRequestWithContext(p.t.Context(), st.method, p.base+fill(st.path), body)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentTypes[st.kind])
	res, err := p.transport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(bytes.TrimSpace(raw), &answer); err != nil {
		answer = map[string]any{"text": string(raw)}
	}
	return p.comparable(res.StatusCode, answer)
}

// comparable removes the parts that differ between two API servers: versions, uids, times
// and messages. It records the first two.
func (p *player) comparable(code int, answer map[string]any) map[string]any {
	out := map[string]any{"code": code}
	if answer["kind"] == "Status" || answer["text"] != nil {
		if code >= 400 {
			out["reason"] = answer["reason"]
			details, _ := answer["details"].(map[string]any)
			var causes []string // some occur more than once
			list, _ := details["causes"].([]any)
			for _, c := range list {
				cause, _ := c.(map[string]any)
				causes = append(causes, fmt.Sprint(cause["reason"], " ", cause["field"]))
			}
			slices.Sort(causes)
			out["causes"] = slices.Compact(causes)
		}
		return out
	}
	if items, ok := answer["items"].([]any); ok {
		for _, item := range items {
			strip(item)
		}
		out["items"] = items
		return out
	}
	meta, _ := answer["metadata"].(map[string]any)
	rv, _ := meta["resourceVersion"].(string)
	out["changed"] = rv != p.rv
	p.rv, p.uid = rv, fmt.Sprint(meta["uid"])
	strip(answer)
	out["object"] = answer
	return out
}

func strip(object any) {
	o, _ := object.(map[string]any)
	meta, _ := o["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		delete(meta, key)
	}
	if meta["deletionTimestamp"] != nil {
		meta["deletionTimestamp"] = "set"
	}
	managed, _ := meta["managedFields"].([]any)
	for _, m := range managed {
		entry, _ := m.(map[string]any)
		delete(entry, "time")
	}
	// Both sort entries by their time in seconds first. Only one of them may cross a
	// second.
	slices.SortFunc(managed, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}
