// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

func (a *asked) History(name string) ([]admin.Change, error) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	return []admin.Change{
		{Time: at, Revision: 1, Digest: "sha256:aa", Module: name + ".wasm", Result: admin.ChangeStarted},
		{Time: at.Add(time.Hour), Revision: 2, Digest: "sha256:bb", Module: "oci://h/r:2@sha256:cc", Result: "rolled_back", Why: "it does worse\nthan before"},
	}, nil
}

// TestGet_ListsControllers: in the forms that users of kubectl expect.
func TestGet_ListsControllers(t *testing.T) {
	t.Parallel()
	two := []string{"--socket", (&asked{names: []string{"web", "db"}}).listen(t)}
	for line, want := range map[string]string{
		"get":                    "CONTROLLER",
		"get controllers":        "db",
		"get db web -o name":     "db\nweb",
		"get -o name":            "web\ndb",
		"get controllers web":    "CONTROLLER",
		"get web -o json":        "{\n  \"name\": \"web\"",
		"get -o yaml":            "items:\n- ",
		"get web db -o json":     "\"items\"",
		"get none":               "controller[none]: unknown controller; the process runs: web, db",
		"get reconcilers":        "Reconcilers are objects of the cluster: kubectl get reconcilers",
		"get reconciler/a":       "Reconcilers are objects of the cluster: kubectl get reconcilers",
		"pause reconciler/a":     "to stop the module of a Reconciler: wasmctl suspend reconciler/a",
		"history":                "CONTROLLER is missing",
		"history none":           "controller[none]: unknown controller",
		"history web x":          "unexpected argument",
		"history web -o json":    "\"items\": [\n    {\n      \"time\": \"2026-01-01T13:00:00Z\"",
		"history reconciler/a b": "unexpected argument",
	} {
		if got := says(t, line, two...); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if got := says(t, "get controllers db", two...); strings.Contains(got, "web") {
		t.Errorf("one controller: %s", got)
	}
	lines := strings.Split(says(t, "history web", two...), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "2  rolled_back  bb") || !strings.HasSuffix(lines[1], "oci://h/r:2  it does worse") || !strings.Contains(lines[2], "1  started") {
		t.Errorf("history:\n%s", strings.Join(lines, "\n"))
	}
}
