// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// process is a Service with one controller.
type process struct {
	proof     []byte // of a shadow
	triggered []abi.Key
	paused    bool
	swapped   string
	options   SwapOptions
	change    map[string]*string
	released  Release
	asked     LogQuery

	pausedObject string
	caller       string        // of the last swap
	left         chan struct{} // closed when no client follows the log
}

func (p *process) Status() Status {
	return Status{Version: "v1", PID: 7, Controllers: []Controller{{Name: "web", Paused: p.paused, Failures: map[string]uint64{"trap": 2}}}}
}

func (p *process) History(controller string) ([]Change, error) {
	if controller != "web" {
		return nil, fmt.Errorf("controller[%s]: %w", controller, ErrUnknown)
	}
	return []Change{{Revision: 1, Result: ChangeStarted}, {Revision: 2, Result: "swapped", Why: "swap, by " + p.caller}}, nil
}

func (p *process) Trigger(_ context.Context, controller string, objects []abi.Key, _ bool) (Steered, error) {
	if controller != "web" {
		return Steered{}, fmt.Errorf("controller[%s]: %w", controller, ErrUnknown)
	}
	p.triggered = objects
	if len(objects) == 0 {
		return Steered{Replicas: 5}, nil
	}
	return Steered{Triggered: len(objects)}, nil
}

func (p *process) Explain(_ context.Context, q Question) ([]Explanation, error) {
	if q.Kind == "none" {
		return nil, fmt.Errorf("nothing reconciles %s", q.Kind)
	}
	return []Explanation{{Controller: q.Controller, Kind: q.Kind, Object: q.Object.String(), Runs: []history.Run{{Took: history.Duration(1500 * time.Millisecond)}}}}, nil
}

func (p *process) Logs(ctx context.Context, controller string, q LogQuery, emit func([]byte) error) error {
	if controller != "web" {
		return fmt.Errorf("controller[%s]: %w", controller, ErrUnknown)
	}
	p.asked = q
	for i := range 3 {
		if err := emit(fmt.Appendf(nil, "{\"n\":%d}\n", i)); err != nil {
			return err
		}
	}
	if q.Follow {
		<-ctx.Done()
		close(p.left)
	}
	return nil
}

func (p *process) LogLevel(controller, level string) (string, error) {
	if level == "" {
		return "info", nil
	}
	return level, nil
}

func (p *process) Top(objects int) Top {
	return Top{Controllers: []TopController{{Name: "web", Load: history.Load{Runs: 1.5}}}, Objects: make([]TopObject, objects)}
}

func (p *process) PauseObject(_ context.Context, _ string, object abi.Key, paused bool) error {
	p.pausedObject = fmt.Sprint(object, " ", paused)
	return nil
}

func (p *process) Pause(_ context.Context, _ string, paused bool) (Steered, error) {
	p.paused = paused
	return Steered{Replicas: 3}, nil
}

func (p *process) Swap(ctx context.Context, controller string, wasm []byte, options SwapOptions) (Swapped, error) {
	p.caller = Caller(ctx)
	p.swapped, p.options = fmt.Sprint(controller, " ", string(wasm), " ", options.Force), options
	if controller != "web" {
		return Swapped{}, fmt.Errorf("controller[%s]: %w", controller, ErrUnknown)
	}
	if string(wasm) == "bad" {
		return Swapped{}, failure.Module.Wrap(errors.New("two problems"))
	}
	return Swapped{Revision: 2, Unchanged: options.Force, Canary: options.Canary != nil}, nil
}

func (p *process) Rollback(_ context.Context, _ string, to uint64) (Swapped, error) {
	return Swapped{Revision: to + 1}, nil
}

func (p *process) Promote(context.Context, string) (Swapped, error) {
	return Swapped{Revision: 3}, nil
}

func (p *process) Abort(_ context.Context, controller string) (Swapped, error) {
	return Swapped{}, fmt.Errorf("no canary of %s", controller)
}

func (p *process) Shadow(_ context.Context, controller string, wasm []byte, options ShadowOptions, report func(Shadowed) error) (sum shadow.Summary, err error) {
	if controller != "web" {
		return sum, fmt.Errorf("controller[%s]: %w", controller, ErrUnknown)
	}
	p.proof = options.Proof
	for i := range options.Count {
		run := Shadowed{Object: fmt.Sprint("shop/", i), ReconcileID: string(wasm)}
		if options.All {
			run.Differences = []shadow.Difference{{Of: shadow.OfWrite, Path: options.For.String(), Live: map[string]any{"a": "b"}}}
		}
		sum.Add(abi.Key{Name: run.Object}, run.Differences)
		if err := report(run); err != nil {
			return sum, err
		}
		if i == 3 {
			return sum, errors.New("it broke")
		}
	}
	return sum, nil
}

func (p *process) Release(_ context.Context, controller string, what Release) ([]Released, error) {
	if controller != "web" {
		return nil, fmt.Errorf("controller[%s]: %w", controller, ErrUnknown)
	}
	p.released = what
	return []Released{{Object: "shop/a", Deleting: true}, {Object: "shop/b", Error: "no"}}, nil
}

func (p *process) Configure(_ context.Context, _ string, change map[string]*string) (int64, error) {
	p.change = change
	return 7, nil
}

func TestAdmin_ReleasePassesObjectsAndResults(t *testing.T) {
	p := &process{}
	c, _ := serve(t, p)
	for _, what := range []Release{{Objects: []abi.Key{{Namespace: "shop", Name: "a"}, {Name: "b"}}, DryRun: true}, {Objects: []abi.Key{}, All: true}} {
		got, err := c.Release(t.Context(), "web", what)
		if diff := cmp.Diff([]Released{{Object: "shop/a", Deleting: true}, {Object: "shop/b", Error: "no"}}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff(what, p.released); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := c.Release(t.Context(), "none", Release{All: true}); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown controller: %v", err)
	}
}

func TestAdmin_HistoryPassesChanges(t *testing.T) {
	c, _ := serve(t, &process{caller: "me"})
	want := []Change{{Revision: 1, Result: ChangeStarted}, {Revision: 2, Result: "swapped", Why: "swap, by me"}}
	if got, err := c.History(t.Context(), "web"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v)", got, err)
	}
	if _, err := c.History(t.Context(), "none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown controller: %v", err)
	}
}

func TestAdmin_SwapRollbackAndConfigure(t *testing.T) {
	p := &process{}
	c, _ := serve(t, p)
	for _, force := range []bool{false, true} {
		res, err := c.Swap(t.Context(), "web", []byte("wasm"), SwapOptions{Force: force})
		if want := (Swapped{Revision: 2, Unchanged: force}); err != nil || res != want || p.swapped != fmt.Sprint("web wasm ", force) {
			t.Errorf("got %+v (%v), asked for %q", res, err, p.swapped)
		}
	}
	if _, err := c.Swap(t.Context(), "web", []byte("bad"), SwapOptions{}); !errors.Is(err, failure.Module) || err.Error() != "two problems" {
		t.Errorf("refused: %v", err)
	}
	if _, err := c.Swap(t.Context(), "none", nil, SwapOptions{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown controller: %v", err)
	}
	if res, err := c.Rollback(t.Context(), "web", 3); err != nil || res.Revision != 4 {
		t.Errorf("rollback: %+v (%v)", res, err)
	}
	value := "blue"
	want := map[string]*string{"color": &value, "size": nil}
	if gen, err := c.Configure(t.Context(), "web", want); err != nil || gen != 7 {
		t.Errorf("configure: %d (%v)", gen, err)
	}
	if diff := cmp.Diff(want, p.change); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// serve runs a Server on a socket in a short path, because a socket's path has at most 107
// bytes.
func serve(t *testing.T, service Service) (*Client, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "admin-") //nolint:usetesting // t.TempDir's path can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	path := DefaultPath(1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(path, service, slog.New(slog.DiscardHandler)).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	for range 1000 {
		if answers(t.Context(), path) {
			return NewClient(path), path
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("the socket does not answer")
	return nil, ""
}

func TestAdmin_ClientAndServerAgree(t *testing.T) {
	p := &process{}
	c, path := serve(t, p)
	if found, err := Find(t.Context()); err != nil || found != path {
		t.Errorf("found %q (%v), want %q", found, err, path)
	}
	want := []abi.Key{{Namespace: "shop", Name: "a"}, {Name: "b"}}
	if n, err := c.Trigger(t.Context(), "web", want, true); err != nil || n != (Steered{Triggered: 2}) {
		t.Errorf("triggered %+v (%v)", n, err)
	}
	if diff := cmp.Diff(want, p.triggered); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if n, err := c.Trigger(t.Context(), "web", nil, false); err != nil || n != (Steered{Replicas: 5}) || len(p.triggered) != 0 {
		t.Errorf("all: triggered %+v (%v), objects %v", n, err, p.triggered)
	}
	if _, err := c.Trigger(t.Context(), "none", nil, false); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown controller: %v", err)
	}
	if n, err := c.Pause(t.Context(), "web", true); err != nil || n.Replicas != 3 {
		t.Errorf("paused: %+v (%v)", n, err)
	}
	got, err := c.Status(t.Context())
	if diff := cmp.Diff(p.Status(), got); diff != "" || err != nil || !got.Controllers[0].Paused {
		t.Errorf("status: %v (-want +got):\n%s", err, diff)
	}
	if _, err := c.Pause(t.Context(), "web", false); err != nil || p.paused {
		t.Errorf("resume: %v", err)
	}
}

func TestAdmin_OnlyTheOwnerGetsIn(t *testing.T) {
	_, path := serve(t, &process{})
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", name, got, want)
		}
	}
}

// TestClient_SaysThatNobodyListens: without a socket, and with one that a dead process left
// behind.
func TestClient_SaysThatNobodyListens(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	for _, path := range []string{left, filepath.Join(t.TempDir(), "none.sock")} {
		if _, err := NewClient(path).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no process listens") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAdmin_SocketInUseIsRefusedAndALeftOneReplaced(t *testing.T) {
	_, path := serve(t, &process{})
	err := New(path, &process{}, slog.New(slog.DiscardHandler)).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--socket") {
		t.Errorf("a second process: %v", err)
	}
	left := filepath.Join(filepath.Dir(path), "left.sock")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(left, &process{}, slog.New(slog.DiscardHandler)).Run(ctx) }()
	for !answers(t.Context(), left) {
		<-time.After(10 * time.Millisecond)
	}
	if _, err := Find(t.Context()); err == nil || !strings.Contains(err.Error(), "2 processes are running") {
		t.Errorf("found one of two: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestHandler_BadRequestsAreAnswered(t *testing.T) {
	h := New("", &process{}, slog.New(slog.DiscardHandler)).Handler()
	for body, want := range map[string]int{
		"":                              http.StatusBadRequest,
		"[]":                            http.StatusBadRequest,
		`{"objects": ["a/b/c"]}`:        http.StatusBadRequest,
		`{"objects": ["a/"]}`:           http.StatusBadRequest,
		`{"objects": [""]}`:             http.StatusBadRequest,
		`{"objects": ["a/b"]}`:          http.StatusOK,
		strings.Repeat(" ", maxBody+1):  http.StatusBadRequest,
		`{"objects": ["a/b"], "x": {}}`: http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/controllers/web/trigger", strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%.40q: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
}

// The options of a swap arrive as they were sent; a canary is ended by its commands.
func TestAdmin_Canary(t *testing.T) {
	p := &process{}
	c, _ := serve(t, p)
	for _, options := range []SwapOptions{
		{},
		{Canary: &Canary{Share: "off"}},
		{Canary: &Canary{Share: "0.5%", Time: new(90 * time.Second)}, Force: true, Proof: []byte("{}\xff")},
		{Canary: &Canary{Namespaces: []string{"a", "b c"}, Selector: "tier in (web,db),!x"}},
	} {
		res, err := c.Swap(t.Context(), "web", []byte("wasm"), options)
		if err != nil || res.Canary != (options.Canary != nil) {
			t.Errorf("%+v: %+v %v", options, res, err)
		}
		if diff := cmp.Diff(options, p.options); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	}
	if res, err := c.Promote(t.Context(), "web"); err != nil || res.Revision != 3 {
		t.Errorf("promote: %+v %v", res, err)
	}
	if _, err := c.Abort(t.Context(), "web"); failure.Of(err) != "" || err.Error() != "no canary of web" {
		t.Errorf("abort: %v", err)
	}
	if _, err := swapOptions(url.Values{queryTime: {"soon"}}); err == nil {
		t.Error("a time that is none")
	}
}

func TestAdmin_QuestionsArriveAsTheyAreAsked(t *testing.T) {
	c, _ := serve(t, &process{})
	q := Question{Controller: "web&x=y", Kind: "apps/v1/Deployment", Object: abi.Key{Namespace: "shop", Name: "a"}}
	got, err := c.Explain(t.Context(), q)
	want, _ := (&process{}).Explain(t.Context(), q)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := c.Explain(t.Context(), Question{Kind: "none"}); err == nil || !strings.Contains(err.Error(), "nothing reconciles none") {
		t.Error(err)
	}
}

// Each compared run of a shadow arrives immediately, then the summary; an error after the
// first run, or an error of report, ends it.
func TestAdmin_Shadow(t *testing.T) {
	p := &process{}
	c, _ := serve(t, p)
	var reported []Shadowed
	report := func(s Shadowed) error {
		reported = append(reported, s)
		return nil
	}
	sum, err := c.Shadow(t.Context(), "web", []byte("wasm"), ShadowOptions{For: time.Minute, Count: 2, All: true, Proof: []byte("proof")}, report)
	if err != nil || sum.Runs != 2 || sum.Different != 2 || sum.Objects != 2 || string(p.proof) != "proof" {
		t.Errorf("%+v %v, with proof %q", sum, err, p.proof)
	}
	want := []shadow.Difference{{Of: shadow.OfWrite, Path: "1m0s", Live: map[string]any{"a": "b"}}}
	if len(reported) != 2 || reported[1].Object != "shop/1" || reported[1].ReconcileID != "wasm" || !cmp.Equal(reported[1].Differences, want) {
		t.Errorf("told %+v", reported)
	}
	if _, err := c.Shadow(t.Context(), "web", nil, ShadowOptions{For: time.Minute, Count: 9}, report); err == nil || err.Error() != "it broke" {
		t.Errorf("in the middle: %v", err)
	}
	enough := errors.New("enough")
	if _, err := c.Shadow(t.Context(), "web", nil, ShadowOptions{For: time.Minute, Count: 2}, func(Shadowed) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("from who is told: %v", err)
	}
	if _, err := c.Shadow(t.Context(), "none", nil, ShadowOptions{For: time.Minute}, report); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown controller: %v", err)
	}
	if _, err := c.Shadow(t.Context(), "web", nil, ShadowOptions{}, report); err == nil || !strings.Contains(err.Error(), "such as 5m") {
		t.Errorf("without a time: %v", err)
	}
}

func TestAdmin_LogsAreStreamed(t *testing.T) {
	p := &process{left: make(chan struct{})}
	c, _ := serve(t, p)
	var got []string
	emit := func(line []byte) error {
		got = append(got, string(line))
		return nil
	}
	q := LogQuery{Object: "a/b", Since: time.Unix(1, 5).UTC(), Tail: 7}
	if err := c.Logs(t.Context(), "web", q, emit); err != nil || p.asked != q {
		t.Errorf("%+v, %v", p.asked, err)
	}
	if diff := cmp.Diff([]string{"{\"n\":0}\n", "{\"n\":1}\n", "{\"n\":2}\n"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.Logs(t.Context(), "none", q, emit); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown controller: %v", err)
	}
	// Lines arrive while the log is followed, and the process notices when the client is
	// gone.
	got = nil
	enough := errors.New("enough")
	err := c.Logs(t.Context(), "web", LogQuery{Follow: true}, func(line []byte) error {
		if got = append(got, string(line)); len(got) == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	<-p.left
	if level, err := c.LogLevel(t.Context(), "web", "debug"); level != "debug" || err != nil {
		t.Error(level, err)
	}
}

func TestAdmin_OneObjectIsPaused(t *testing.T) {
	p := &process{}
	c, _ := serve(t, p)
	if err := c.PauseObject(t.Context(), "web", abi.Key{Namespace: "shop", Name: "a"}, true); err != nil || p.pausedObject != "shop/a true" || p.paused {
		t.Errorf("%q, the controller is paused: %v; %v", p.pausedObject, p.paused, err)
	}
	if err := c.PauseObject(t.Context(), "web", abi.Key{Name: "a/b/c"}, false); err == nil {
		t.Error("a bad name is no error")
	}
}

func TestAdmin_Top(t *testing.T) {
	c, _ := serve(t, &process{})
	got, err := c.Top(t.Context(), 3)
	if diff := cmp.Diff((&process{}).Top(3), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
