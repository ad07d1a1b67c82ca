// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

const (
	alertRules = "../../../docs/dashboards/alerts.yaml"
	dashboard  = "../../../docs/dashboards/wasmctl.json"
)

// expressions returns the expressions of the dashboard and of the alert rules.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	var rules struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	for path, into := range map[string]any{dashboard: &board, alertRules: &rules} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, into); err != nil { // JSON is YAML
			t.Fatalf("%s: %v", path, err)
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			list = append(list, r.Expr)
		}
	}
	return list
}

// checkPages checks that a real scrape contains each metric and label in the dashboard
// and the alert rules, and that none of them needs a full scrape.
func checkPages(t *testing.T, url string) {
	t.Helper()
	list, got := expressions(t), e2e.Scraped(t, url)
	metric := regexp.MustCompile(`\b(?:controller_runtime|workqueue|rest_client|leader_election|wasmctl|process|go)_[a-z_]+`)
	onlyFull := map[string]bool{}
	for _, d := range metrics.Descriptions() {
		onlyFull[d.Name] = d.Full
	}
	_, basic := e2e.Fetch(t, url+"/metrics")
	n := 0
	for _, expr := range list {
		names := metric.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%q names no metric", expr)
		}
		for _, name := range names {
			n++
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if cut, ok := strings.CutSuffix(name, suffix); ok && got.Types[cut] == "histogram" {
					base = cut
				}
			}
			if got.Types[base] == "" && quietMetrics[base] == "" {
				t.Errorf("%q: there is no %s", expr, name)
			}
			ofGo := strings.HasPrefix(base, "go_") || strings.HasPrefix(base, "process_")
			if onlyFull[base] || ofGo && !strings.Contains(basic, "\n"+base+" ") {
				t.Errorf("%q: only a full scrape has %s", expr, name)
			}
			if strings.Contains(expr, "controller=~") && !strings.Contains(strings.Join(got.Labels[base], " "), "controller") {
				t.Errorf("%q: %s has no label controller", expr, name)
			}
		}
	}
	if n < 60 {
		t.Errorf("%d metrics in %d expressions", n, len(list))
	}
}

// TestAlerts_PromtoolAccepts: promtool accepts the alert rules and the expressions of
// the dashboard.
func TestAlerts_PromtoolAccepts(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("SKIPPED: promtool is not installed (Debian's package prometheus): alert rules and dashboard are not checked")
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, expr := range expressions(t) {
		fmt.Fprintf(&rules, "  - {record: %q, expr: %q}\n", fmt.Sprintf("panel:%d", i), strings.ReplaceAll(expr, "$__rate_interval", "5m"))
	}
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	e2e.Replace(t, path, []byte(rules.String()))
	for _, path := range []string{alertRules, path} {
		if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}

// firstEvents are series that appear 30 minutes after the start, and what the alert rules make of them.
const firstEvents = `
rule_files: [%q]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - {series: 'wasmctl_module_swaps_total{result="rolled_back"}', values: '_x30 1x100'}
  - {series: 'wasmctl_reconcile_failures_total{kind="trap"}', values: '_x30 5x100'}
  - {series: 'wasmctl_reconcile_failures_total{kind="output"}', values: '_x30 6x100'}
  - {series: 'wasmctl_build_info', values: '1x130'}
  promql_expr_test:
  - {eval_time: 29m, expr: 'count(ALERTS)', exp_samples: []}
  - eval_time: 35m
    expr: 'ALERTS'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlGuestTraps", alertstate="firing", kind="output", severity="warning"}'}
    - {value: 1, labels: 'ALERTS{alertname="WasmctlModuleTakenBack", alertstate="firing", result="rolled_back", severity="warning"}'}
  - {eval_time: 95m, expr: 'count(ALERTS)', exp_samples: []}
`

// deaths are the series of a group of two replicas, both of which are gone from minute 100 on: one crashes every five
// minutes from minute 10 to minute 40, and runs another module from minute 30 on.
const deaths = `
rule_files: [%q]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - {series: 'wasmctl_build_info{namespace="ops", job="web", pod="a"}', values: '1x100'}
  - {series: 'wasmctl_build_info{namespace="ops", job="web", pod="b"}', values: '1x90'}
  - {series: 'wasmctl_build_info{namespace="ops", job="other", pod="c"}', values: '1x200'}
  - {series: 'wasmctl_shard_leases_ended_total{namespace="ops", job="web", pod="a"}', values: '0x10 1x5 2x5 3x5 4x5 5x5 6x60'}
  - {series: 'wasmctl_shard_leases_ended_total{namespace="ops", job="other", pod="c"}', values: '0x10 1x5 2x100'}
  - {series: 'wasmctl_shard_peer_age_seconds{namespace="ops", job="web", pod="a"}', values: '2 9 14 2x60 62+60x10 2x26'}
  - {series: 'wasmctl_module_info{namespace="ops", job="web", pod="a", controller="dns", digest="sha256:1", revision="1"}', values: '1x100'}
  - {series: 'wasmctl_module_info{namespace="ops", job="web", pod="b", controller="dns", digest="sha256:1", revision="7"}', values: '1x30'}
  - {series: 'wasmctl_module_info{namespace="ops", job="web", pod="b", controller="dns", digest="sha256:2", revision="8"}', values: '_x31 1x59'}
  promql_expr_test:
  - {eval_time: 15m, expr: 'count(ALERTS{alertstate="firing"})', exp_samples: []}
  - eval_time: 30m
    expr: 'ALERTS{alertstate="firing"}'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlReplicasDie", alertstate="firing", namespace="ops", job="web", severity="warning"}'}
  - eval_time: 63m
    expr: 'ALERTS{alertstate="firing", alertname="WasmctlModulesDiffer"}'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlModulesDiffer", alertstate="firing", namespace="ops", job="web", controller="dns", severity="warning"}'}
  - eval_time: 72m
    expr: 'ALERTS{alertstate="firing", alertname="WasmctlReplicaSilent"}'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlReplicaSilent", alertstate="firing", namespace="ops", job="web", severity="critical"}'}
  - {eval_time: 99m, expr: 'count(ALERTS{alertstate="firing"})', exp_samples: []}
  - eval_time: 115m
    expr: 'ALERTS{alertstate="firing"}'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlAbsent", alertstate="firing", namespace="ops", job="web", severity="critical"}'}
- interval: 1m
  input_series:
  - {series: 'wasmctl_build_info', values: '1x10'}
  promql_expr_test:
  - {eval_time: 9m, expr: 'count(ALERTS)', exp_samples: []}
  - eval_time: 3h
    expr: 'ALERTS'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlAbsent", alertstate="firing", severity="critical"}'}
`

// expiring is a replica that does not renew the certificate of its webhooks, and one that does.
const expiring = `
rule_files: [%q]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - {series: 'wasmctl_webhook_certificate_expiry_timestamp_seconds{pod="a"}', values: '43800x120'}
  - {series: 'wasmctl_webhook_certificate_expiry_timestamp_seconds{pod="b"}', values: '172800x120'}
  - {series: 'wasmctl_build_info', values: '1x130'}
  promql_expr_test:
  - {eval_time: 15m, expr: 'count(ALERTS{alertstate="firing"})', exp_samples: []}
  - eval_time: 30m
    expr: 'ALERTS{alertstate="firing"}'
    exp_samples:
    - {value: 1, labels: 'ALERTS{alertname="WasmctlWebhookCertificateExpires", alertstate="firing", pod="a", severity="critical"}'}
`

// TestAlerts_NoticeACertificateThatIsNotRenewed, half a day before it expires.
func TestAlerts_NoticeACertificateThatIsNotRenewed(t *testing.T) { promtoolTest(t, expiring) }

// TestAlerts_NoticeTheFirstEvent: a series that appears with its first event fires the alert, and stops to do so after
// the time of the rule.
func TestAlerts_NoticeTheFirstEvent(t *testing.T) { promtoolTest(t, firstEvents) }

// TestAlerts_NoticeReplicasThatDie: a replica that crashes again and again, one that runs another module, one that is
// silent, and the end of all.
func TestAlerts_NoticeReplicasThatDie(t *testing.T) { promtoolTest(t, deaths) }

// promtoolTest runs a unit test of the alert rules, which has a verb for their path.
func promtoolTest(t *testing.T, test string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("SKIPPED: promtool is not installed (Debian's package prometheus): alert rules are not evaluated")
	}
	rules, err := filepath.Abs(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "first.yaml")
	e2e.Replace(t, path, fmt.Appendf(nil, test, rules))
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// wantPrometheus lets a real Prometheus scrape the process, and evaluate the alert rules
// on the result.
func (e *eventful) wantPrometheus(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Log("SKIPPED: prometheus is not installed (Debian's package of that name): no real Prometheus has scraped this")
		return
	}
	rules, err := filepath.Abs(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	e2e.Replace(t, config, fmt.Appendf(nil, `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: wasmctl, static_configs: [{targets: [%q]}]}]
`, rules, strings.TrimPrefix(e.url, "http://")))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error",
		"--enable-feature=exemplar-storage")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	query := func(path, expr string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path+"?"+url.Values{"query": {expr}}.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error() // it has only been started
		}
		var body struct{ Data json.RawMessage }
		err = json.NewDecoder(resp.Body).Decode(&body)
		_ = resp.Body.Close() // it was read
		if err != nil {
			return err.Error()
		}
		return string(body.Data)
	}
	enginetest.Until(t, "Prometheus has scraped", func() bool {
		return strings.Contains(query("/api/v1/query", "up"), `"1"]`)
	})
	enginetest.Until(t, "Prometheus has the runs", func() bool {
		return strings.Contains(query("/api/v1/query", `controller_runtime_reconcile_total{controller="modes",result="error"} > 0`), `"controller":"modes"`)
	})
	enginetest.Until(t, "the alert rules are evaluated, without an error", func() bool {
		return strings.Contains(query("/api/v1/rules", ""), `"health":"ok"`) && !strings.Contains(query("/api/v1/rules", ""), `"health":"err"`)
	})
	if got := query("/api/v1/query", `scrape_samples_scraped`); !strings.Contains(got, `"wasmctl"`) {
		t.Errorf("samples: %s", got)
	} else {
		t.Logf("real Prometheus: %s", got)
	}
}

// wantExemplar finds a run in the log whose id is an exemplar.
func (e *eventful) wantExemplar(t *testing.T) {
	t.Helper()
	id := regexp.MustCompile(`controller_runtime_reconcile_time_seconds_bucket\{controller="modes",.*# \{reconcile_id="([^"]+)"\}`)
	enginetest.Until(t, "an exemplar names a run of the log", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		_, text := e2e.AnswerOf(t, req)
		found := id.FindStringSubmatch(text)
		return found != nil && strings.HasSuffix(strings.TrimSpace(text), "# EOF") && strings.Contains(e.Text(), `"reconcile_id":"`+found[1]+`"`)
	})
}

// removeController removes a controller from the file: its series disappear, those of
// the others stay, and it returns with its own.
func (e *eventful) removeController(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(e.file)
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		_, ok := e2e.Scraped(t, e.url).Series[`controller_runtime_reconcile_errors_total{controller="`+name+`"}`]
		return ok
	}
	if !has("mapped") {
		t.Error("no series before")
	}
	without := regexp.MustCompile(`(?m)^- \{name: mapped.*\n`).ReplaceAll(content, nil)
	e2e.Replace(t, e.file, without)
	enginetest.Until(t, "the series are gone", func() bool { return !has("mapped") })
	if text := fmt.Sprint(e2e.Scraped(t, e.url).Series); strings.Contains(text, `"mapped"`) || !has("modes") {
		t.Error("something of the controller is left, or the others are gone")
	}
	e2e.Replace(t, e.module, enginetest.Worse(enginetest.Good, 2)) // the Lease remembers that the other was rolled back
	e2e.Replace(t, e.file, content)
	enginetest.Until(t, "the series are back", func() bool { return has("mapped") })
}
