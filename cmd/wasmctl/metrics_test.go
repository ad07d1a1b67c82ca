package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// exposition is what a scrape said.
type exposition struct {
	types  map[string]string   // of each metric, by name
	labels map[string][]string // names, by metric
	bounds map[string][]string // of the buckets, by histogram
	sums   map[string]float64  // of all values of a metric, by name; a histogram's are its counts
	series map[string]float64
}

// readExposition reads Prometheus's text format.
func readExposition(t *testing.T, text string) exposition {
	t.Helper()
	e := exposition{map[string]string{}, map[string][]string{}, map[string][]string{}, map[string]float64{}, map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			e.types[name] = kind
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.add(line[:at], value)
	}
	return e
}

func (e *exposition) add(series string, value float64) {
	e.series[series] = value
	name, rest, _ := strings.Cut(series, "{")
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && e.types[base] == "histogram" {
			if suffix == "_count" {
				e.sums[base] += value
			}
			name = base
		}
	}
	if e.types[name] != "histogram" {
		e.sums[name] += value
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), `",`) {
		label, v, ok := strings.Cut(part, `="`)
		switch v = strings.TrimSuffix(v, `"`); {
		case !ok:
		case label == "le" && e.types[name] == "histogram":
			if !slices.Contains(e.bounds[name], v) && v != "+Inf" {
				e.bounds[name] = append(e.bounds[name], v)
			}
		case !slices.Contains(e.labels[name], label):
			e.labels[name] = append(e.labels[name], label)
			slices.Sort(e.labels[name])
		}
	}
}

// scraped is what a process says now.
func scraped(t *testing.T, url string) exposition {
	t.Helper()
	code, text := fetch(t, url+"/metrics")
	if code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	return readExposition(t, text)
}

// eventful is a process to whose controllers all happens that is counted: they
// succeed, requeue, trap, spin, use up limits, are swapped, refused and rolled
// back, and call the API.
type eventful struct {
	*child

	url    string                    // of /metrics
	made   dynamic.ResourceInterface // what the controller "generator" makes
	dir    string
	file   string
	module string // of the controller "swapped"
}

const eventfulFile = `apiVersion: wasmctl.dev/v1
kind: Controllers
process: {metricsAddress: "127.0.0.1:0", workers: 16, memoryBudget: 64Mi, leaderElect: true, leaderElectResourceNamespace: NS, leaderElectResourceName: metrics, socket: none,
  leaderElectLeaseDuration: 10m, leaderElectRenewDeadline: 5m}
defaults: {grantManifest: true}
controllers:
- {name: modes, module: modes.wasm, for: swaps.GROUP, namespace: NS, fuel: 1M, memory: 1Mi}
- {name: greedy, module: modes.wasm, for: swaps.GROUP, namespace: NS, selector: for=greedy}
- {name: chatty, module: wasi.wasm, for: swaps.GROUP, namespace: NS, selector: for=chatty}
- {name: swapped, module: swapped.wasm, for: cm, namespace: NS, probation: 1m}
- {name: mapped, module: swapped.wasm, for: cm, namespace: NS, owns: [secrets]}
- {name: generator, module: generator.wasm, namespace: NS, memo: memory}
`

// startEventful starts such a process, with an object of package wasm's Modes
// for each mode.
func startEventful(t *testing.T) *eventful {
	t.Helper()
	ns, kubeconfig := newConfigMaps(t)
	cluster := devclustertest.Shared(t)
	group := ns + ".wasmctl.dev"
	devclustertest.ApplyFile(t, cluster, "../../examples/configmapgenerator/crd.yaml")
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
	create(generators, map[string]any{
		"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator", "metadata": map[string]any{"name": "made"}, "spec": map[string]any{"content": "x"},
	})
	e := &eventful{dir: t.TempDir(), made: client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)}
	e.module, e.file = filepath.Join(e.dir, "swapped.wasm"), filepath.Join(e.dir, "controllers.yaml")
	replace(t, e.module, enginetest.Worse(enginetest.Good, int(time.Now().UnixNano()))) // of which nobody has code
	compileAsAnother(t, e.module, ns, kubeconfig)
	for name, from := range map[string]string{"modes.wasm": guests + "modes.wasm", "wasi.wasm": guests + "wasi.wasm", "generator.wasm": exampleWasm(t, "configmapgenerator")} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(e.dir, name), b)
	}
	replace(t, e.file, []byte(strings.NewReplacer("GROUP", group, "NS", ns).Replace(eventfulFile)))
	e.child = startWasmctl(t, "-f", e.file, "--kubeconfig", kubeconfig)
	e.url = served(t, e.child, "/metrics")
	e.wantLine(`"msg":"reconciled"`, `"controller":"generator"`) // it is large, and the others leave no time to compile it
	// Each happens in one run, however busy the machine is: more lines at once than
	// a log takes, and more memory than the process has.
	also := map[int64]string{9: "chatty", 15: "greedy"}
	for _, mode := range []int64{0, 1, 2, 3, 4, 6, 8, 9, 11, 12, 15} { // the last key in the order of keys is the last byte
		create(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "swaps"}, map[string]any{
			"apiVersion": group + "/v1", "kind": "Swap", "zz": mode,
			"metadata": map[string]any{"name": enginetest.ObjectName(int(mode)), "labels": map[string]any{"for": also[mode]}},
		})
	}
	return e
}

// compileAsAnother leaves code of a module in the cache that another user's key
// authenticates.
func compileAsAnother(t *testing.T, module, ns, kubeconfig string) {
	t.Helper()
	c := startWasmctlEnv(t, []string{"XDG_CONFIG_HOME=" + t.TempDir()}, module, "--for", "cm", "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig)
	c.wantLine(`"msg":"module loaded"`)
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// fight changes what the controller "generator" has made, so that it writes
// again, and again.
func (e *eventful) fight(t *testing.T) {
	t.Helper()
	patch := []byte(`{"data":{"content":"of somebody else"}}`)
	if _, err := e.made.Patch(t.Context(), "made", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// quietMetrics are counters that nothing in an eventful process counts up, with
// the test that does.
var quietMetrics = map[string]string{
	"wasmctl_guest_process_resident_memory_bytes": "TestMetrics_MemoryOfAProcessFollowsItsModules: nothing is isolated here",
	"wasmctl_shard_slots":                         "TestShards_EachReplicaSaysWhoRunsWhat: this one elects a leader",
	"wasmctl_shard_epoch":                         "TestShards_EachReplicaSaysWhoRunsWhat",
	"wasmctl_shard_moves_total":                   "TestShards_EachReplicaSaysWhoRunsWhat",
	"wasmctl_shard_load":                          "TestShards_EachReplicaSaysWhoRunsWhat",
	"rest_client_request_retries_total":           "TestRequests_CountsRetries of runtime/metrics",
	"wasmctl_stale_reconciles_total":              "the tests of runtime/applier: it needs a watch that is late by seconds while requests are not",
}

// TestMetrics_EachIsCounted scrapes a real run: each metric of docs/metrics.md
// is there, each counter has counted, and what controller-runtime has too has
// the same type, labels and buckets.
func TestMetrics_EachIsCounted(t *testing.T) {
	t.Parallel()
	e := startEventful(t)
	e.wantLine(`"msg":"reconciled"`, `"controller":"swapped"`, "/"+enginetest.ObjectName(0))
	replace(t, e.module, wasm.BadExports)
	e.wantLine("not swapped in", `"controller":"swapped"`)
	replace(t, e.module, enginetest.Worse(enginetest.Traps, 1))
	e.wantLine("rolling back", `"controller":"swapped"`)
	var zero []string
	counted := func() bool {
		e.fight(t)
		got, before := scraped(t, e.url), zero
		zero = nil
		for _, d := range documentedMetrics(t) {
			if _, quiet := quietMetrics[d.name]; !quiet && (got.types[d.name] != d.kind || d.kind != "gauge" && got.sums[d.name] == 0) {
				zero = append(zero, d.name)
			}
		}
		if !slices.Equal(before, zero) {
			t.Logf("not counted yet: %v", zero)
		}
		return len(zero) == 0
	}
	enginetest.Until(t, "each metric has counted", counted)
	compareWithControllerRuntime(t, scraped(t, e.url))
	checkPages(t, scraped(t, e.url))
	e.wantPrometheus(t)
	e.wantExemplar(t)
	e.removeController(t)
}

// documented is a row of the table of docs/metrics.md.
type documented struct{ name, kind string }

const metricsPage = "../../docs/metrics.md"

// documentedMetrics are the rows of the table.
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

// TestMetrics_TheTableIsWhatIsDescribed keeps the documented table true.
func TestMetrics_TheTableIsWhatIsDescribed(t *testing.T) {
	var want strings.Builder
	want.WriteString("| Metric | Type | Labels | |\n|---|---|---|---|\n")
	for _, d := range metrics.Descriptions() {
		labels := make([]string, len(d.Labels))
		for i, l := range d.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(labels, ", "), d.Help)
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

// notOurs are metrics of controller-runtime for what there is none of here.
var notOurs = []string{"certwatcher_", "controller_runtime_webhook_", "controller_runtime_conversion_webhook_"}

// compareWithControllerRuntime compares with the list that bench's
// TestMetrics_TheListIsWhatControllerRuntimeHas made from a real run of
// controller-runtime.
func compareWithControllerRuntime(t *testing.T, got exposition) {
	t.Helper()
	list, err := os.ReadFile("../../runtime/metrics/testdata/controller-runtime.txt")
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
		ours := fmt.Sprintf("%s %s {%s}", name, got.types[name], strings.Join(got.labels[name], ","))
		if len(got.bounds[name]) > 0 {
			ours += " " + strings.Join(got.bounds[name], " ")
		}
		if ours != line {
			t.Errorf("controller-runtime has\n%s\nhere it is\n%s", line, ours)
		}
	}
	if n < 20 || got.series["go_goroutines"] == 0 {
		t.Errorf("%d metrics were compared, and there are %v goroutines", n, got.series["go_goroutines"])
	}
}
