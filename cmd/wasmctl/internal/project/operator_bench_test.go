// SPDX-License-Identifier: Apache-2.0

//go:build unix

package project

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/operation"
)

// BenchmarkOperator measures a run of an operator on controller-runtime, in CPU time and fuel: one
// that creates a Deployment and records an Event, one that patches the status, and one that changes
// nothing. The API server's answers are canned.
func BenchmarkOperator(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "operator")
	if err := os.CopyFS(dir, os.DirFS("../../../../guest-sdk/controller-runtime/testdata/webapp")); err != nil {
		b.Fatal(err)
	}
	const mod = "module example.com/operator\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
		b.Fatal(err)
	}
	var said bytes.Buffer
	res, err := Build(b.Context(), dir, Options{SDK: "../../../..", Stderr: &said})
	if err != nil {
		b.Fatalf("%v\n%s", err, &said)
	}
	wasm, err := os.ReadFile(res.File)
	if err != nil {
		b.Fatal(err)
	}
	api := &canned{missing: packJSON(b, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"deployments.apps \"hello-world\" not found","reason":"NotFound","code":404}`)}
	m, err := host.Load(b.Context(), wasm, host.Config{API: func(*abi.Manifest) (operation.API, error) { return api, nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(b.Context()) }()
	ready := `,"status":{"readyReplicas":1,"conditions":[{"type":"Available","status":"True","reason":"Deployed","message":"the Deployment is there",` +
		`"observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:06Z"}]}`
	for _, run := range []struct{ name, status, deployment string }{
		{"create", "", ""},
		{"status", "", cannedDeployment(false)},
		{"unchanged", ready, cannedDeployment(false)},
	} {
		b.Run(run.name, func(b *testing.B) {
			api.site, api.patched = packJSON(b, cannedSite(run.status, false)), packJSON(b, cannedSite(ready, true))
			api.created, api.deployment = packJSON(b, cannedDeployment(true)), packJSON(b, run.deployment)
			benchmarkReconcile(b, m, api.site)
		})
	}
}

func benchmarkReconcile(b *testing.B, m *host.Module, object []byte) {
	guest, release, err := m.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	req := abi.Request{ID: "1", Attempt: 1, Key: abi.Key{Namespace: "default", Name: "hello-world"}, Object: object}
	run := func() {
		if res, err := guest.Reconcile(b.Context(), &req); err != nil || res.Error != nil {
			b.Fatal(err, res)
		}
	}
	for range 50 { // plans are made, and memory has its size
		run()
	}
	begin, fuel := cpuTime(b), guest.Fuel()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(guest.Fuel()-fuel)/float64(b.N), "fuel/op")
}

// canned answers the calls of the operator.
type canned struct {
	site, patched, created, deployment, missing []byte // msgpack
}

// Call implements operation.API.
func (c *canned) Call(_ context.Context, op abi.Op, body []byte) abi.Response {
	site := bytes.Contains(body, []byte("\xa4kind\xa4Site"))
	answer := map[abi.Op][]byte{abi.OpAPIPatch: c.patched, abi.OpAPICreate: c.created, abi.OpCacheGet: c.deployment}[op]
	switch {
	case op == abi.OpEventRecord:
		return abi.Response{}
	case op == abi.OpCacheGet && site:
		answer = c.site
	case answer == nil:
		return abi.Response{Status: 404, Body: c.missing}
	}
	return abi.Response{Body: answer}
}

func packJSON(b *testing.B, js string) []byte {
	b.Helper()
	if js == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(js), &v); err != nil {
		b.Fatal(err)
	}
	packed, err := abi.AppendValue(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	return packed
}

// cannedSite is a Site as the cache has it, or with managed fields as the API server
// answers it.
func cannedSite(status string, managed bool) string {
	meta := `"name":"hello-world","namespace":"default","uid":"5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11","resourceVersion":"123456","generation":1,"creationTimestamp":"2026-01-02T03:04:05Z"`
	if managed {
		meta += `,"managedFields":[{"manager":"bench","operation":"Update","apiVersion":"apps.wasmctl.test/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1",` +
			`"fieldsV1":{"f:spec":{".":{},"f:image":{}}}},{"manager":"wasmctl/site","operation":"Update","apiVersion":"apps.wasmctl.test/v1","time":"2026-01-02T03:04:06Z",` +
			`"fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{},"f:readyReplicas":{}}},"subresource":"status"}]`
	}
	return `{"apiVersion":"apps.wasmctl.test/v1","kind":"Site","metadata":{` + meta + `},"spec":{"image":"nginx"}` + status + `}`
}

// cannedDeployment is the Deployment of the Site, as cannedSite.
func cannedDeployment(managed bool) string {
	meta := `"name":"hello-world","namespace":"default","uid":"0b8e5b5e-2f0c-4b0e-9a43-0f1f6f2d7c12","resourceVersion":"123457","generation":1,"creationTimestamp":"2026-01-02T03:04:06Z",` +
		`"ownerReferences":[{"apiVersion":"apps.wasmctl.test/v1","kind":"Site","name":"hello-world","uid":"5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11","controller":true,"blockOwnerDeletion":true}]`
	if managed {
		meta += `,"managedFields":[{"manager":"wasmctl/site","operation":"Update","apiVersion":"apps/v1","time":"2026-01-02T03:04:06Z","fieldsType":"FieldsV1","fieldsV1":` +
			`{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11\"}":{}}},"f:spec":{"f:progressDeadlineSeconds":{},"f:replicas":{},` +
			`"f:revisionHistoryLimit":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{},"f:maxUnavailable":{}},"f:type":{}},"f:template":{"f:metadata":` +
			`{"f:labels":{".":{},"f:site":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},` +
			`"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},` +
			`"f:terminationGracePeriodSeconds":{}}}}}}]`
	}
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{` + meta + `},"spec":{"replicas":1,"selector":{"matchLabels":{"site":"hello-world"}},"template":{"metadata":` +
		`{"labels":{"site":"hello-world"}},"spec":{"containers":[{"name":"web","image":"nginx","resources":{},"terminationMessagePath":"/dev/termination-log",` +
		`"terminationMessagePolicy":"File","imagePullPolicy":"Always"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},` +
		`"schedulerName":"default-scheduler"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},"revisionHistoryLimit":10,` +
		`"progressDeadlineSeconds":600},"status":{}}`
}
