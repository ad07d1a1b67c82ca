// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// errForbidden is the error of a request that the API server denies to the process.
var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "denied", nil)

// asked is an admin.Service that answers with the arguments of each request.
type asked struct {
	admin.Service
	names []string
}

func (a *asked) Status() admin.Status {
	st := admin.Status{PID: 7}
	for _, name := range a.names {
		st.Controllers = append(st.Controllers, admin.Controller{Name: name, State: "ok", Phase: admin.PhaseRunning})
	}
	return st
}

func (a *asked) Explain(_ context.Context, q admin.Question) ([]admin.Explanation, error) {
	if q.Kind != "" && q.Kind != "webapp" && q.Kind != "apps/v1/App" {
		return nil, failure.Usage.Wrap(errors.New("no controller reconciles this kind"))
	}
	e := admin.Explanation{Controller: q.Controller, Kind: q.Kind, Object: q.Object.String(), State: "idle", Runs: make([]history.Run, 3)}
	if q.Object.Name == "gone" {
		e.State = admin.StateAbsent
	}
	return []admin.Explanation{e}, nil
}

func (a *asked) Trigger(_ context.Context, name string, objects []abi.Key, _ bool) (admin.Steered, error) {
	if !slices.Contains(a.names, name) {
		return admin.Steered{}, fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown)
	}
	return admin.Steered{}, fmt.Errorf("trigger %s %v", name, objects)
}

func (a *asked) Pause(_ context.Context, name string, _ bool) (admin.Steered, error) {
	return admin.Steered{}, fmt.Errorf("all of %s", name)
}

func (a *asked) PauseObject(_ context.Context, name string, object abi.Key, _ bool) error {
	if object.Name == "denied" {
		return errForbidden
	}
	return fmt.Errorf("object %s of %s", object, name)
}

func (a *asked) Release(context.Context, string, admin.Release) ([]admin.Released, error) {
	return nil, errForbidden
}

func (a *asked) Swap(_ context.Context, name string, _ []byte, _ admin.SwapOptions) (admin.Swapped, error) {
	return admin.Swapped{}, fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown)
}

func (a *asked) Rollback(context.Context, string, uint64) (admin.Swapped, error) {
	return admin.Swapped{}, host.ErrNotKept
}

func (a *asked) Promote(context.Context, string) (admin.Swapped, error) {
	return admin.Swapped{}, rollout.ErrNoCanary
}

func (a *asked) Abort(context.Context, string) (admin.Swapped, error) {
	return admin.Swapped{}, rollout.ErrNoCanary
}

func (a *asked) Logs(_ context.Context, name string, _ admin.LogQuery, _ func([]byte) error) error {
	if !slices.Contains(a.names, name) {
		return fmt.Errorf("controller[%s]: %w", name, admin.ErrUnknown)
	}
	return fmt.Errorf("log of %s", name)
}

func (a *asked) Top(int) admin.Top {
	return admin.Top{Objects: []admin.TopObject{{Controller: "web", Object: "shop/a"}, {Controller: "db", Object: "shop/b"}}}
}

// listen serves a and returns its socket.
func (a *asked) listen(t *testing.T) string {
	t.Helper()
	return listen(t, a)
}

// listen serves a service and returns its socket.
func listen(t *testing.T, service admin.Service) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "asked-") //nolint:usetesting // t.TempDir's path can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s.sock")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.New(socket, service, slog.New(slog.DiscardHandler)).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	enginetest.Until(t, "the process answers", func() bool {
		_, err := admin.NewClient(socket).Status(t.Context())
		return err == nil
	})
	return socket
}

// says runs a command line and returns its output.
func says(t *testing.T, line string, more ...string) string {
	t.Helper()
	var out bytes.Buffer
	execute(t.Context(), append(strings.Split(line, " "), more...), streams{in: strings.NewReader(""), out: &out, err: &out})
	return strings.TrimSpace(out.String())
}

// TestTarget_AllCommandsTakeAllForms: explain, trigger, pause, resume and logs accept controllers and
// objects in the same forms.
func TestTarget_AllCommandsTakeAllForms(t *testing.T) {
	t.Parallel()
	one, two := (&asked{names: []string{"web"}}).listen(t), (&asked{names: []string{"web", "db"}}).listen(t)
	for _, c := range []struct{ socket, line, want string }{
		{one, "trigger web shop/a b", "trigger web [shop/a b]"},
		{one, "trigger shop/a", "trigger web [shop/a]"},
		{one, "trigger a -n shop", "trigger web [shop/a]"},
		{one, "trigger web -n shop", "trigger web [shop/web]"},
		{one, "trigger web a b -n shop", "trigger web [shop/a shop/b]"},
		{one, "trigger --all", "trigger web []"},
		{one, "trigger web --all", "trigger web []"},
		{one, "trigger web", "want the names of objects, or --all"},
		{one, "trigger other/a -n shop", "is not in --namespace shop"},
		{two, "trigger db a -n shop", "trigger db [shop/a]"},
		{two, "trigger a -n shop --controller db", "trigger db [shop/a]"},
		{two, "trigger shop/a", "CONTROLLER is missing; the process runs: web, db"},
		{two, "trigger a -n shop", "controller[a]: unknown controller; the process runs: web, db"},
		{one, "pause", "all of web"},
		{one, "pause web", "all of web"},
		{one, "resume a -n shop", "object shop/a of web"},
		{two, "pause web shop/a", "object shop/a of web"},
		{two, "pause db -n shop", "the name of an object is missing"},
		{two, "resume", "CONTROLLER is missing"},
		{one, "logs", "log of web"},
		{one, "logs nope", "unknown controller; the process runs: web"},
		{two, "logs", "CONTROLLER is missing; the process runs: web, db"},
		{two, "logs db", "log of db"},
		{one, "explain webapp/a -n shop", "webapp shop/a, controller : idle"},
		{one, "explain apps/v1/App/a", "apps/v1/App a, controller : idle"},
		{one, "explain webapp a -n shop", "webapp shop/a, controller : idle"},
		{one, "explain web a -n shop", " shop/a, controller web: idle"},
		{one, "explain web shop/a", " shop/a, controller web: idle"},
		{one, "explain shop/a", " shop/a, controller web: idle"},
		{one, "explain a", " a, controller web: idle"},
		{one, "explain wepap/gone", "no controller reconciles this kind"},
		{one, "explain /a", "want KIND/NAME"},
		{two, "explain shop/a", "no controller reconciles this kind"},
		{two, "explain shop/a --controller db", " shop/a, controller db: idle"},
		{two, "explain db a -n shop", " shop/a, controller db: idle"},
		{two, "explain webapp/a -n shop", "webapp shop/a, controller : idle"},
		{two, "explain a", "controller[a]: unknown controller; the process runs: web, db"},
		{one, cobraComplete + "explain ", "web shop/a :4"},
		{one, cobraComplete + "explain web ", "shop/a :4"},
		{one, cobraComplete + "trigger -n shop ", "web a :4"},
		{two, cobraComplete + "pause db ", "shop/b :4"},
		{two, cobraComplete + "explain ", "web db :4"},
	} {
		line, more := c.line, []string{"--socket", c.socket}
		if rest, completes := strings.CutPrefix(line, cobraComplete); completes {
			command, last, _ := strings.Cut(rest, " ")
			line, more = cobraComplete+command+" --socket "+c.socket+" "+last, nil
		}
		if got := strings.Join(strings.Fields(says(t, line, more...)), " "); !strings.Contains(" "+got, c.want) || strings.Count(got, "the process runs") > 1 {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	for last, want := range map[string]int{"0": 0, "2": 2, "9": 3, "-1": 3} {
		if got := strings.Count(says(t, "explain web a --last "+last+" --socket "+one), "ago:"); got != want {
			t.Errorf("--last %s: %d runs, want %d", last, got, want)
		}
	}
}

// cobraComplete begins the command line of a shell that completes another command line.
const cobraComplete = "__complete "

// TestStatus_AllShowsEachProcess: with two processes, status fails and refers to --all, which shows
// both.
func TestStatus_AllShowsEachProcess(t *testing.T) {
	dir, err := os.MkdirTemp("", "all-") //nolint:usetesting // t.TempDir's path can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(admin.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for pid, name := range []string{"web", "db"} {
		if err := os.Symlink((&asked{names: []string{name}}).listen(t), admin.DefaultPath(pid)); err != nil {
			t.Fatal(err)
		}
	}
	if got := says(t, "status"); !strings.Contains(got, "2 processes") || !strings.Contains(got, "wasmctl status --all") {
		t.Errorf("status: %s", got)
	}
	got := says(t, "status --all")
	for _, want := range []string{"socket " + admin.DefaultPath(0), "socket " + admin.DefaultPath(1), "web", "db"} {
		if !strings.Contains(got, want) {
			t.Errorf("--all does not say %q:\n%s", want, got)
		}
	}
	if got := says(t, "status --all -o json"); strings.Count(got, `"pid"`) != 2 {
		t.Errorf("--all -o json: %s", got)
	}
}
