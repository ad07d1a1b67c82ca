// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// eventful is a process whose controllers cause all counted events: they succeed,
// requeue, trap, spin, exceed limits, are swapped, refused and rolled back, and call the
// API.
type eventful struct {
	*e2e.Process

	url    string                    // of /metrics
	made   dynamic.ResourceInterface // the objects of the controller "generator"
	dir    string
	file   string
	module string // of the controller "swapped"
}

const eventfulFile = `apiVersion: wasmctl.dev/v1
kind: Controllers
process: {metricsAddress: "127.0.0.1:0", workers: 16, memoryBudget: 64Mi, leaderElect: true, leaderElectResourceNamespace: NS, leaderElectResourceName: metrics, socket: none,
  leaderElectLeaseDuration: 10m, leaderElectRenewDeadline: 5m}
defaults: {grant: {manifest: true}}
controllers:
- {name: modes, module: modes.wasm, for: swaps.GROUP, namespaces: NS, limits: {fuel: 1M, memory: 1Mi}}
- {name: greedy, module: modes.wasm, for: swaps.GROUP, namespaces: NS, selector: for=greedy}
- {name: chatty, module: wasi.wasm, for: swaps.GROUP, namespaces: NS, selector: for=chatty}
- {name: swapped, module: swapped.wasm, for: cm, namespaces: NS, rollout: {probation: 1m}}
- {name: mapped, module: swapped.wasm, for: cm, namespaces: NS, owns: [secrets]}
- {name: generator, module: generator.wasm, namespaces: NS, memo: memory}
`

// startEventful starts an eventful process, with an object for each mode of the guest
// modes.wasm.
func startEventful(t *testing.T) *eventful {
	t.Helper()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	cluster := devclustertest.Shared(t)
	group := ns + ".wasmctl.dev"
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	devclustertest.Apply(t, cluster, []byte(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: swaps.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: swaps, singular: swap, kind: Swap}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, "GROUP", group)))
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	create := func(gvr schema.GroupVersionResource, object map[string]any) {
		if _, err := client.Resource(gvr).Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(e2e.Generators, map[string]any{
		"apiVersion": e2e.Generators.GroupVersion().String(), "kind": "ConfigMapGenerator", "metadata": map[string]any{"name": "made"}, "spec": map[string]any{"content": "x"},
	})
	e := &eventful{dir: t.TempDir(), made: client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)}
	e.module, e.file = filepath.Join(e.dir, "swapped.wasm"), filepath.Join(e.dir, "controllers.yaml")
	e2e.Replace(t, e.module, enginetest.Worse(enginetest.Good, int(time.Now().UnixNano()))) // a module without cached code
	compileAsAnother(t, e.module, ns, kubeconfig)
	for name, from := range map[string]string{"modes.wasm": e2e.Guests + "modes.wasm", "wasi.wasm": e2e.Guests + "wasi.wasm", "generator.wasm": e2e.Example(t, "configmapgenerator")} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		e2e.Replace(t, filepath.Join(e.dir, name), b)
	}
	e2e.Replace(t, e.file, []byte(strings.NewReplacer("GROUP", group, "NS", ns).Replace(eventfulFile)))
	e.Process = e2e.Run(t, "-f", e.file, "--kubeconfig", kubeconfig)
	e.url = e2e.Served(t, e.Process, "/metrics")
	e.WantLine(`"msg":"reconciled"`, `"controller":"generator"`) // it is large, and the others would leave no CPU time for compiling it
	// Each of these happens in one run, even on a busy machine: more lines at once than the log accepts,
	// and more memory than the process has.
	also := map[int64]string{9: "chatty", 15: "greedy"}
	for _, mode := range []int64{0, 1, 2, 3, 4, 6, 8, 9, 11, 12, 15} { // the last key in the order of keys is the last byte
		create(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "swaps"}, map[string]any{
			"apiVersion": group + "/v1", "kind": "Swap", "zz": mode,
			"metadata": map[string]any{"name": enginetest.ObjectName(int(mode)), "labels": map[string]any{"for": also[mode]}},
		})
	}
	return e
}

// compileAsAnother leaves compiled code in the cache that is authenticated with the key
// of another user.
func compileAsAnother(t *testing.T, module, ns, kubeconfig string) {
	t.Helper()
	c := e2e.RunEnv(t, []string{"XDG_CONFIG_HOME=" + t.TempDir()}, module, "--for", "cm", "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig)
	c.WantLine(`"msg":"module loaded"`)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// fight changes the object of the controller "generator", so that it writes it again and
// again.
func (e *eventful) fight(t *testing.T) {
	t.Helper()
	patch := []byte(`{"data":{"content":"of somebody else"}}`)
	if _, err := e.made.Patch(t.Context(), "made", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// quietMetrics are counters that no event of an eventful process increments, with the
// tests that do.
var quietMetrics = map[string]string{
	"controller_runtime_webhook_requests_total":            "TestServer_Metrics of runtime/webhook: there is no server here",
	"wasmctl_webhook_certificate_expiry_timestamp_seconds": "TestServer_Metrics of runtime/webhook: there is no server here",
	"wasmctl_admissions_total":                             "TestWebhooks_OnTheAPIServer: no module has webhooks here",
	"wasmctl_guest_process_resident_memory_bytes":          "TestMetrics_MemoryOfAProcessFollowsItsModules: nothing is isolated here",
	"wasmctl_shard_slots":                                  "TestShards_EachReplicaSaysWhoRunsWhat: this one elects a leader",
	"wasmctl_shard_epoch":                                  "TestShards_EachReplicaSaysWhoRunsWhat",
	"wasmctl_shard_moves_total":                            "TestShards_EachReplicaSaysWhoRunsWhat",
	"wasmctl_shard_load":                                   "TestShards_EachReplicaSaysWhoRunsWhat",
	"wasmctl_shard_leases_ended_total":                     "TestShards_AnEventSaysThatASlotIsRunTwice",
	"wasmctl_shard_peer_age_seconds":                       "TestShards_EachReplicaSaysWhoRunsWhat",
	"wasmctl_shard_slot_objects":                           "TestShards_EachReplicaSaysWhoRunsWhat",
	"rest_client_request_retries_total":                    "TestRequests_CountsRetries of runtime/metrics",
	"wasmctl_stale_reconciles_total":                       "the tests of runtime/applier: it needs a watch that is late by seconds while requests are not",
}

// TestMetrics_EachIsCounted makes full scrapes of a real run: it has each metric of docs/metrics.md,
// each counter has counted, and each metric of controller-runtime has the same type,
// labels and buckets.
func TestMetrics_EachIsCounted(t *testing.T) {
	t.Parallel()
	e := startEventful(t)
	e.WantLine(`"msg":"reconciled"`, `"controller":"swapped"`, "/"+enginetest.ObjectName(0))
	e2e.Replace(t, e.module, wasm.BadExports)
	e.WantLine("not swapped in", `"controller":"swapped"`)
	e2e.Replace(t, e.module, enginetest.Worse(enginetest.Traps, 1))
	e.WantLine("rolling back", `"controller":"swapped"`)
	var zero []string
	counted := func() bool {
		e.fight(t)
		got, before := e2e.Scraped(t, e.url), zero
		zero = nil
		for _, d := range documentedMetrics(t) {
			if _, quiet := quietMetrics[d.name]; !quiet && (got.Types[d.name] != d.kind || d.kind != "gauge" && got.Sums[d.name] == 0) {
				zero = append(zero, d.name)
			}
		}
		if !slices.Equal(before, zero) {
			t.Logf("not counted yet: %v", zero)
		}
		return len(zero) == 0
	}
	enginetest.Until(t, "each metric has counted", counted)
	compareWithControllerRuntime(t, e2e.Scraped(t, e.url))
	checkPages(t, e.url)
	e.wantPrometheus(t)
	e.wantExemplar(t)
	e.removeController(t)
}

// documented is a row of the table of docs/metrics.md.
type documented struct{ name, kind string }

const metricsPage = "../../../docs/metrics.md"

// documentedMetrics returns the rows of the table.
func documentedMetrics(t *testing.T) (list []documented) {
	t.Helper()
	_, table, _ := cutTable(t)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			list = append(list, documented{strings.Trim(cells[0], "| `"), cells[1]})
		}
	}
	return list
}

func cutTable(t *testing.T) (before, table, after string) {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(string(page), begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("no table in " + metricsPage)
	}
	return before + begin, table, end + after
}

// TestMetrics_TheTableIsWhatIsDescribed: the table in the documentation is up to date.
func TestMetrics_TheTableIsWhatIsDescribed(t *testing.T) {
	var want strings.Builder
	want.WriteString("| Metric | Type | Labels | |\n|---|---|---|---|\n")
	for _, d := range metrics.Descriptions() {
		labels := make([]string, len(d.Labels))
		for i, l := range d.Labels {
			labels[i] = "`" + l + "`"
		}
		help := d.Help
		if d.Full {
			help += " Only in full scrapes."
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(labels, ", "), help)
	}
	before, table, after := cutTable(t)
	if os.Getenv("WASMCTL_UPDATE") != "" {
		table = want.String()
		if err := os.WriteFile(metricsPage, []byte(before+table+after), 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want.String(), table); diff != "" {
		t.Errorf("%s: WASMCTL_UPDATE=1 go test -run TheTableIs ./cmd/wasmctl (-want +got):\n%s", metricsPage, diff)
	}
	if n := len(documentedMetrics(t)); n != len(metrics.Descriptions()) {
		t.Errorf("%d rows for %d metrics", n, len(metrics.Descriptions()))
	}
}

// notOurs are metrics of controller-runtime that have no equivalent here.
var notOurs = []string{"certwatcher_", "controller_runtime_webhook_", "controller_runtime_conversion_webhook_"}

// compareWithControllerRuntime compares with the list that
// TestMetrics_TheListIsWhatControllerRuntimeHas of bench made from a real run of
// controller-runtime.
func compareWithControllerRuntime(t *testing.T, got e2e.Exposition) {
	t.Helper()
	list, err := os.ReadFile("../../../runtime/metrics/testdata/controller-runtime.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		if slices.ContainsFunc(notOurs, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		n++
		ours := fmt.Sprintf("%s %s {%s}", name, got.Types[name], strings.Join(got.Labels[name], ","))
		if len(got.Bounds[name]) > 0 {
			ours += " " + strings.Join(got.Bounds[name], " ")
		}
		if ours != line {
			t.Errorf("controller-runtime has\n%s\nhere it is\n%s", line, ours)
		}
	}
	if n < 20 || got.Series["go_goroutines"] == 0 {
		t.Errorf("%d metrics were compared, and there are %v goroutines", n, got.Series["go_goroutines"])
	}
}
