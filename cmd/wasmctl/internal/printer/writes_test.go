// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// printing prints the writes that a Recorder is notified of.
type printing struct {
	*telemetry.Recorder

	out bytes.Buffer
	run *abi.Run // the run that sends the requests; if nil, the host sends them
}

func newPrinting() *printing {
	p := &printing{run: &abi.Run{ID: "1", Key: abi.Key{Namespace: "a", Name: "web"}}}
	writes := NewWrites(&p.out)
	p.Recorder = telemetry.NewRecorder(telemetry.Config{History: 1 << 20, OnWrite: func(w telemetry.Write) { writes.Print(wasmctl.Write(w)) }})
	p.For("web", kinds.Kind{})
	p.History.Begin(&history.Running{ID: p.run.ID, Key: p.run.Key, Since: time.Now()})
	return p
}

// report reports an exchange and returns the output.
func (p *printing) report(ctx context.Context, e kubeapi.Exchange) string {
	p.out.Reset()
	if p.run != nil {
		ctx = abi.WithRun(ctx, p.run)
	}
	p.Requested(ctx, &e)
	return p.out.String()
}

// explained returns the last operation as wasmctl explain shows it.
func (p *printing) explained() string {
	ops := p.Running()[0].Operations
	var b strings.Builder
	Operation(&b, "", &ops[len(ops)-1], ", for a/web")
	return b.String()
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

var secretKind = kinds.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}

func secretJSON(password, label, version string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","resourceVersion":"` + version +
		`","labels":{"l":"` + label + `"}},"data":{"p":"` + password + `"}}`)
}

// TestWrites_HaveOneLook: created, changed, failed, deleted and unknown writes are printed as wasmctl
// explain shows them, without the values of Secrets.
func TestWrites_HaveOneLook(t *testing.T) {
	p := newPrinting()
	for _, tt := range []struct {
		what string
		e    kubeapi.Exchange
		want []string
	}{
		{
			"older than the process",
			kubeapi.Exchange{Op: abi.OpAPIApply, Sent: []byte(`{"metadata":{"name":"s"},"data":{"sent":"hunter00"}}`), Answer: secretJSON("hunter00", "1", "1")},
			[]string{"written   apply secrets a/s, for a/web; previous content unknown", "+ data: ", "[redacted #"},
		},
		{"gone", kubeapi.Exchange{Op: abi.OpAPIDelete, Answer: []byte(`{"kind":"Status"}`)}, []string{"deleted   delete secrets a/s, for a/web\n"}},
		{
			"made",
			kubeapi.Exchange{Op: abi.OpAPIApply, Created: true, Sent: secretJSON("hunter2x", "1", ""), Answer: secretJSON("hunter2x", "1", "2")},
			[]string{"created   apply secrets a/s, for a/web\n", `+ metadata.labels: {"l":"1"}`, "+ data: ", "[redacted #"},
		},
		{
			"changed",
			kubeapi.Exchange{Op: abi.OpAPIApply, Answer: secretJSON("hunter3x", "2", "3")},
			[]string{"changed   apply secrets a/s, for a/web\n", `~ metadata.labels.l: "1" -> "2"`, `~ data.p: "[redacted #`},
		},
		{"failed", kubeapi.Exchange{Op: abi.OpAPIUpdate, Err: abi.ErrTooLarge}, []string{"failed    update secrets a/s, for a/web\n", abi.ErrTooLarge.Error()}},
	} {
		tt.e.Kind, tt.e.Key = secretKind, abi.Key{Namespace: "a", Name: "s"}
		got := p.report(t.Context(), tt.e)
		if !strings.HasPrefix(got, tt.want[0]) || !containsAll(got, tt.want) || strings.Contains(got, "hunter") {
			t.Errorf("%s:\n%swant %q", tt.what, got, tt.want)
		}
		if explained := p.explained(); explained != got {
			t.Errorf("%s: printed\n%sexplained\n%s", tt.what, got, explained)
		}
	}
	if got := p.report(t.Context(), kubeapi.Exchange{Op: abi.OpAPIGet, Kind: secretKind, Answer: secretJSON("x", "1", "1")}); got != "" {
		t.Errorf("a read: %s", got)
	}
}

// TestOperation_NamesTheManagersWhoseFieldsWereTakenOver in the line of the patch that did it.
func TestOperation_NamesTheManagersWhoseFieldsWereTakenOver(t *testing.T) {
	p := newPrinting()
	cm := kinds.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}
	p.report(t.Context(), kubeapi.Exchange{Op: abi.OpAPIPatch, Kind: cm, Key: abi.Key{Namespace: "a", Name: "x"}, TakenFrom: []string{"manager", "wasmctl/web"}})
	if got := p.explained(); !strings.Contains(got, "patch configmaps a/x, for a/web; took over the fields of manager, wasmctl/web, so that") {
		t.Error(got)
	}
}

// TestWrites_FoldWhatIsUnchanged: a swap that reconciles 323 objects with five children each, and
// adds a child to one of them, prints two lines, also if writes never pause, and at the end.
func TestWrites_FoldWhatIsUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewWrites(&out)
		write := func(object, child int, effect history.Effect) {
			w := wasmctl.Write{Run: abi.Key{Namespace: "a", Name: strconv.Itoa(object)}}
			w.Name, w.Resource, w.Object.Key, w.Effect = "api_apply", "configmaps", abi.Key{Namespace: "a", Name: fmt.Sprintf("%d-%d", object, child)}, effect
			p.Print(w)
		}
		want := func(what, text string) {
			t.Helper()
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if got := out.String(); got != text {
				t.Errorf("%s:\n%swant\n%s", what, got, text)
			}
			out.Reset()
		}
		sleep := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // virtual time
		}
		for object := range 324 {
			for child := range 5 {
				effect := history.Unchanged
				if object == 7 && child == 3 {
					effect = history.Changed
				}
				write(object, child, effect)
			}
			sleep(quietTime / 100)
		}
		want("while it lasts", "changed   apply configmaps a/7-3, for a/7\n")
		sleep(quietTime)
		want("the end of a swap", "323 objects unchanged\n")
		for range 30 {
			write(1, 1, history.Unchanged)
			sleep(quietTime / 2)
		}
		want("without a pause", "1 object unchanged\n")
		p.Close()
		want("closed", "1 object unchanged\n")
		write(1, 1, history.Changed)
		sleep(time.Hour)
		want("after the end", "")
	})
}

// TestWrites_CopiesOfSecretsAreHidden: the value of a Secret is not printed if a module copies it to
// another object.
func TestWrites_CopiesOfSecretsAreHidden(t *testing.T) {
	p := newPrinting()
	p.Secrets.LearnObject(map[string]any{"kind": "Secret", "stringData": map[string]any{"a": "hunter2-hunter2"}})
	object := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"copy":"it is hunter2-hunter2"}}`)
	got := p.report(t.Context(), kubeapi.Exchange{
		Op: abi.OpAPICreate, Kind: kinds.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true},
		Key: abi.Key{Namespace: "a", Name: "c"}, Created: true, Sent: object, Answer: slices.Clone(object),
	})
	if !strings.Contains(got, "it is [redacted #") || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}

// TestWrites_OfADryRunOnce: it prints planned changes against the current state, and not again
// while they stay the same, including the host's own writes.
func TestWrites_OfADryRunOnce(t *testing.T) {
	p := newPrinting()
	e := kubeapi.Exchange{
		Op: abi.OpAPIApply, Kind: secretKind, Key: abi.Key{Namespace: "a", Name: "x"}, DryRun: true,
		Before: kubeapi.Before{JSON: secretJSON("hunter2x", "1", "1")}, Answer: secretJSON("hunter3x", "2", "1"),
	}
	if got := p.report(t.Context(), e); !containsAll(got, []string{"changed   apply secrets a/x (dry run)", `~ metadata.labels.l: "1" -> "2"`, "~ data.p: "}) || strings.Contains(got, "hunter") {
		t.Errorf("the first: %s", got)
	}
	if got := p.report(t.Context(), e); got != "" {
		t.Errorf("the same again: %s", got)
	}
	e.Answer = secretJSON("hunter3x", "3", "1")
	if got := p.report(t.Context(), e); !strings.Contains(got, `"1" -> "3"`) {
		t.Errorf("another: %s", got)
	}
	ev := &events.Event{Type: "Normal", Reason: "Made", Note: "a\x1b[2Jnote"}
	ev.Regarding.Kind, ev.Regarding.Name = "App", "web"
	if got := p.report(t.Context(), kubeapi.Exchange{Op: abi.OpEventRecord, DryRun: true, Event: ev}); got != "event     about App web: Normal Made: a\\u001b[2Jnote (dry run)\n" {
		t.Errorf("an event: %q", got)
	}
	p.run, e.Op = nil, abi.OpAPIDelete
	if got := p.report(t.Context(), e); got != "deleted   delete secrets a/x (dry run)\n" {
		t.Errorf("of the host: %q", got)
	}
}

// TestWrites_OfADryRunToldApart: if a run patches an object in two ways, each of them is printed once,
// even if the run repeats.
func TestWrites_OfADryRunToldApart(t *testing.T) {
	p := newPrinting()
	for i := range 3 {
		for _, label := range []string{"2", "3"} {
			got := p.report(t.Context(), kubeapi.Exchange{
				Op: abi.OpAPIPatch, Kind: secretKind, Key: abi.Key{Namespace: "a", Name: "s"}, DryRun: true,
				Sent: []byte(`{"metadata":{"labels":{"l":"` + label + `"}}}`), Before: kubeapi.Before{JSON: secretJSON("same", "1", "1")}, Answer: secretJSON("same", label, "1"),
			})
			if printed := strings.Contains(got, "metadata.labels"); printed != (i == 0) {
				t.Errorf("run %d, label %s: %q", i, label, got)
			}
		}
	}
}
