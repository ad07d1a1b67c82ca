// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

var statusNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// statusWith returns a status of n controllers with various problems.
func statusWith(n int) *admin.Status {
	st := &admin.Status{Version: "v1", PID: 7, Started: statusNow.Add(-time.Hour)}
	for i := range n {
		c := admin.Controller{
			Name: fmt.Sprintf("controller-%03d", i), Kind: "configmapgenerators.examples.wasmctl.dev", Phase: admin.PhaseRunning, Workers: 4, State: "ok",
			Digest: "sha256:0123456789abcdef", Revision: 1, Runs: uint64(i) * 1000, Memory: 3 << 20,
			Revisions: []admin.Revision{{Number: 1, State: "live", Digest: "sha256:0123456789abcdef", Since: statusNow}},
			Watches:   []admin.Watch{{Source: "configmapgenerators.examples.wasmctl.dev", Phase: "ready", Since: statusNow, Objects: i}},
		}
		switch i % 40 {
		case 1:
			c.State = "hangs: shop/hangs has been running for 20s"
		case 2:
			c.Failing, c.State = 3, "fails: shop/trap 1s ago: trap: wasm: unreachable\x1b[2J"
		case 3:
			c.Phase, c.State = admin.PhaseWaiting, "waiting: widgets.example.com: 日本語の世界日本語の世界日本語の世界"
		case 4:
			w := &c.Watches[0]
			w.Phase, w.Message = "denied", "needs the verbs list and watch on configmapgenerators: grant them with a role"
			c.State = "watches not ready: denied: " + w.Source + ": " + w.Message
		}
		if i%40 == 2 {
			c.MissingRights = []admin.MissingRight{{
				Rule: []byte(`{"resource":"secrets","verbs":["get"],"namespaces":["shop"]}`), Missing: "its manifest", Count: 12, Last: "shop/key", LastTime: statusNow.Add(-3 * time.Second),
			}}
		}
		st.Controllers = append(st.Controllers, c)
	}
	return st
}

// TestStatus_ShowsReconcilers: all of them, or, with many controllers, those that are not ready. One that needs
// attention counts once.
func TestStatus_ShowsReconcilers(t *testing.T) {
	st := statusWith(1)
	st.Controllers[0].Name, st.Controllers[0].State = "shop.web", "not ready: RolledBack: worse"
	st.Reconcilers = []admin.Reconciler{
		{Kind: "Reconciler", Name: "shop/good", Controller: "shop.good", Ready: true, Reason: "Succeeded", Message: "serving v1", Since: statusNow},
		{Kind: "Reconciler", Name: "shop/new", Controller: "shop.new", Reason: "ImagePullFailed", Message: "no such image", Since: statusNow.Add(-time.Minute), Trouble: true},
		{Kind: "Reconciler", Name: "shop/web", Controller: "shop.web", Reason: "RolledBack", Message: "worse", Since: statusNow, Trouble: true},
	}
	text := strings.Join(StatusLines(st, statusNow, Screen{}, false), "\n")
	for _, want := range []string{", 2 need attention\n", "shop/good   True   Succeeded        0s    serving v1\n", "shop/new    False  ImagePullFailed  1m0s  no such image\n", "shop/web    False  RolledBack       0s    worse\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if live := strings.Join(StatusLines(st, statusNow, Screen{}, true), "\n"); strings.Contains(live, "shop/good") || !strings.Contains(live, "shop/new") {
		t.Errorf("refreshed:\n%s", live)
	}
}

// TestStatus_NeverWraps: no line is wider than the terminal, for any width and content, and text of a
// guest cannot control the terminal.
func TestStatus_NeverWraps(t *testing.T) {
	for _, n := range []int{0, 1, 5, 200} {
		for _, width := range []int{60, 80, 100, 120, 200} {
			for _, live := range []bool{false, true} {
				for _, line := range StatusLines(statusWith(n), statusNow, Screen{width: width, Height: 24}, live) {
					if w := textWidth(line); w > width {
						t.Errorf("%d controllers at %d columns: a line of %d: %q", n, width, w, line)
					}
					if strings.ContainsAny(line, "\x1b\n") {
						t.Errorf("%q", line)
					}
				}
			}
		}
	}
}

// TestStatus_NamesEachCause: in a live table the causes come first, and a narrow terminal shows all of
// them.
func TestStatus_NamesEachCause(t *testing.T) {
	for _, width := range []int{0, 200, 100} {
		lines := StatusLines(statusWith(5), statusNow, Screen{width: width}, true)
		text := strings.Join(lines, "\n")
		for _, want := range []string{"hangs: shop/hangs", "fails: shop/trap 1s", "waiting: widgets", "watches not ready:", "4 need attention"} {
			if !strings.Contains(text, want) {
				t.Errorf("at %d columns %q is not there:\n%s", width, want, text)
			}
		}
		if strings.Contains(lines[3], "controller-000") || !strings.Contains(lines[7], "controller-000") {
			t.Errorf("the one that is well does not come last:\n%s", text)
		}
	}
	whole := strings.Join(StatusLines(statusWith(5), statusNow, Screen{}, false), "\n")
	if !strings.Contains(whole, "trap: wasm: unreachable") || !strings.Contains(whole, "denied: configmapgenerators.examples.wasmctl.dev: needs the verbs list and watch on") {
		t.Errorf("without a width something is cut:\n%s", whole)
	}
	if !strings.Contains(whole, `controller-002     12   3s  shop/key  its manifest  {"resource":"secrets","verbs":["get"],"namespaces":["shop"]}`) {
		t.Errorf("the missing right is not there:\n%s", whole)
	}
	if got := StatusLines(statusWith(0), statusNow, Screen{}, false); len(got) != 1 || !strings.Contains(got[0], "0 controllers") {
		t.Errorf("without controllers: %q", got)
	}
}

// TestStatus_NamesObjectsInQuarantine: objects in quarantine are listed with the first line of their
// error. Only wasmctl explain shows the guest's stack.
func TestStatus_NamesObjectsInQuarantine(t *testing.T) {
	c := admin.Controller{Name: "swaps", Phase: admin.PhaseRunning, State: "1 object quarantined", Quarantined: 1, Quarantine: []admin.QuarantinedObject{{
		Object: "shop/o0", Since: statusNow, Until: statusNow.Add(time.Minute), Runs: 5, Kind: "trap", Error: "wasm error: unreachable\nwasm stack trace:\n\t.reconcile(i32,i32)",
	}}}
	text := strings.Join(StatusLines(&admin.Status{Controllers: []admin.Controller{c}}, statusNow, Screen{}, false), "\n")
	if !strings.Contains(text, "QUARANTINED") || !strings.Contains(text, "shop/o0") || strings.Contains(text, "wasm stack trace") {
		t.Errorf("status:\n%s", text)
	}
}

func TestStatus_ColoursAreForTerminals(t *testing.T) {
	for coloured, want := range map[bool]int{true: 3 + 1, false: 0} { // one more for the denied watch
		text := strings.Join(StatusLines(statusWith(5), statusNow, Screen{width: 200, coloured: coloured}, false), "\n")
		if got := strings.Count(text, colourBad); got != want {
			t.Errorf("coloured %v: %d lines in red, want %d", coloured, got, want)
		}
	}
}

func TestTable_AgreesWithItsWidth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		tab := &table{}
		for i := range 1 + rnd.IntN(6) {
			c := column{title: strings.Repeat("T", 1+rnd.IntN(5)), omit: rnd.IntN(4), right: rnd.IntN(2) == 0}
			if rnd.IntN(2) == 0 {
				c.minWidth = 5
			}
			if i == 0 {
				c.omit, c.minWidth = 0, 5
			}
			tab.columns = append(tab.columns, c)
		}
		for range rnd.IntN(4) {
			cells := make([]any, len(tab.columns))
			for i := range cells {
				cells[i] = strings.Repeat([]string{"x", "é", "界"}[rnd.IntN(3)], rnd.IntN(30))
			}
			tab.row("", cells...)
		}
		width := 1 + rnd.IntN(120)
		for _, line := range tab.render(width, false) {
			if textWidth(line) > width {
				t.Fatalf("%d wide, want %d: %q", textWidth(line), width, line)
			}
		}
	}
}

func TestCut_EndsWithAnEllipsis(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"ééé", 2, "é…"}} {
		if diff := cmp.Diff(c.want, cut(c.s, c.width)); diff != "" {
			t.Errorf("%q at %d: %s", c.s, c.width, diff)
		}
	}
}

// TestStatus_ListsModulesOfFewControllers: the table of controllers comes first, and many
// controllers have no line each for their module.
func TestStatus_ListsModulesOfFewControllers(t *testing.T) {
	for n, want := range map[int]int{3: 3, 25: 0} {
		st := statusWith(n)
		for i := range st.Controllers {
			st.Controllers[i].Module = "oci://registry.example/a:1"
		}
		lines := StatusLines(st, statusNow, Screen{width: 200, Height: 100}, false)
		if got := strings.Count(strings.Join(lines, "\n"), "oci://"); got != want || !strings.Contains(lines[2], "CONTROLLER") {
			t.Errorf("%d controllers: %d modules, want %d:\n%s", n, got, want, strings.Join(lines, "\n"))
		}
	}
}
