// SPDX-License-Identifier: Apache-2.0

package hostlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// host records lines from a level on.
type host struct {
	from  hostlog.Level
	lines []string
}

func (h *host) Enabled(level hostlog.Level) bool { return level >= h.from }

func (h *host) Log(level hostlog.Level, msg string, attrs []any) {
	h.lines = append(h.lines, fmt.Sprint(level, " ", msg, " ", attrs))
}

// Lines have their levels, names and values, within a run and before it. Errors
// before a run are printed instead.
func TestHost_GetsTheLevels(t *testing.T) {
	for _, place := range []*hostlog.Host{&hostlog.Current, &hostlog.Outside} {
		h := &host{from: hostlog.Debug}
		*place = h
		l := hostlog.New(hostlog.Options{}).WithName("a").WithValues("k", 1).WithName("b")
		l.Info("one", "x", "y")
		l.V(1).Info("two")
		l.V(7).Info("three")
		want := "0 one [logger a.b k 1 x y]|-4 two [logger a.b k 1]|-4 three [logger a.b k 1]"
		if place == &hostlog.Current {
			l.Error(errors.New("no"), "four")
			want += "|8 four [logger a.b k 1 error no]"
		}
		if got := strings.Join(h.lines, "|"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		h.lines, h.from = nil, hostlog.Info
		if l.V(1).Info("debug"); l.V(1).Enabled() || len(h.lines) != 0 {
			t.Errorf("a level that the host does not keep: %v", h.lines)
		}
		*place = nil
	}
}

// The run takes precedence over the module, and a writer over both.
func TestHost_TheNearestGetsTheLine(t *testing.T) {
	run, module, dest := &host{}, &host{}, &bytes.Buffer{}
	hostlog.Current, hostlog.Outside = run, module
	defer func() { hostlog.Current, hostlog.Outside = nil, nil }()
	hostlog.New(hostlog.Options{}).Info("a")
	hostlog.New(hostlog.Options{Dest: dest}).Error(errors.New("no"), "b", "k", 1)
	hostlog.New(hostlog.Options{Dest: dest, Enabled: func(level int) bool { return level < 1 }}).V(1).Info("c")
	if len(run.lines) != 1 || len(module.lines) != 0 || dest.String() != "ERROR b error=\"no\" k=\"1\"\n" {
		t.Errorf("%v, %v, %s", run.lines, module.lines, dest)
	}
}
