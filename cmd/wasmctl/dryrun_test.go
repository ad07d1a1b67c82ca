package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// TestDryRun_PrintsADiffOnceAndNoSecret: what would change, against what is
// there, and not again while it stays the same.
func TestDryRun_PrintsADiffOnceAndNoSecret(t *testing.T) {
	var out bytes.Buffer
	d := newDryRun(&out, nil)
	secret := kubeapi.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	e := &kubeapi.Exchange{
		Op: abi.OpAPIApply, Kind: secret, Key: abi.Key{Namespace: "a", Name: "x"}, DryRun: true,
		Before: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","resourceVersion":"1"},"data":{"p":"aHVudGVyMg==","q":"c2FtZQ=="}}`),
		Answer: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","resourceVersion":"1","labels":{"l":"1"}},"data":{"p":"aHVudGVyMw==","q":"c2FtZQ=="}}`),
	}
	d.observe(t.Context(), e)
	d.observe(t.Context(), e)
	got := out.String()
	for _, want := range []string{"# apply secrets a/x\n--- now\n+++ then\n", "+  labels:\n+    l: \"1\"\n", "-  p: ", "+  p: ", "   q: "} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, got)
		}
	}
	for _, value := range []string{"aHVudGVyMg", "aHVudGVyMw", "c2FtZQ"} {
		if strings.Contains(got, value) {
			t.Errorf("a value of the Secret is shown:\n%s", got)
		}
	}
	out.Reset()
	del := *e
	del.Op, del.Answer = abi.OpAPIDelete, []byte(`{"kind":"Status"}`)
	d.observe(t.Context(), &del)
	if got := out.String(); !strings.HasPrefix(got, "# delete secrets a/x\n") || strings.Contains(got, "\n+ ") {
		t.Errorf("a deletion: %s", got)
	}
	out.Reset()
	e.DryRun = false
	d.observe(t.Context(), e)
	if out.Len() > 0 {
		t.Errorf("a write that was carried out: %s", out.String())
	}
}

// TestRun_DryRunChangesNothing: the example runs, says what it would write, and
// the cluster stays as it is.
func TestRun_DryRunChangesNothing(t *testing.T) {
	w := newWalled(t)
	c, out := w.runDry()
	w.generate("a")
	c.wantLine(`"msg":"reconciled"`, w.ns+"/a")
	until(t, "the diff is printed", func() bool {
		return strings.Contains(out(), "# apply configmaps "+w.ns+"/a\n--- now\n+++ then\n") && strings.Contains(out(), "+kind: ConfigMap\n")
	})
	if got := w.configMaps(); got != "" {
		t.Errorf("there are %s", got)
	}
}
