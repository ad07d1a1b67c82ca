// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// TestBegin_MainRunsUntilItStartsTheManager: the argument of Start is used, and
// main need not return. A main that returns before Start is an error.
func TestBegin_MainRunsUntilItStartsTheManager(t *testing.T) {
	main := func() {
		err := Start(func() Choose {
			return func(name string) (wasmctl.Reconciler, error) {
				return wasmctl.Reconciler{Manifest: wasmctl.Manifest{Name: name}}, nil
			}
		})
		if err == nil {
			<-context.Background().Done() // like the manager
		}
	}
	choose := begin(main)
	for _, name := range []string{"web", "db"} {
		if r, err := choose(name); err != nil || r.Manifest.Name != name {
			t.Errorf("%+v, %v", r.Manifest, err)
		}
	}
	if _, err := begin(func() {})("web"); err == nil {
		t.Error("a main that returns is no error")
	}
}

// lines is a host that records lines.
type lines []string

func (*lines) Enabled(hostlog.Level) bool { return true }
func (l *lines) Log(level hostlog.Level, msg string, _ []any) {
	*l = append(*l, fmt.Sprint(level, " ", msg))
}

// TestBegin_KlogLogsToTheHost checks the level, also for a logger that main has
// made from klog. A contextual logger that main gave to klog is preserved.
func TestBegin_KlogLogsToTheHost(t *testing.T) {
	var host lines
	hostlog.Outside, hostlog.Current = &host, &host
	t.Cleanup(func() { hostlog.Outside, hostlog.Current = nil, nil; klog.ClearLogger() })
	of := func(set func()) []string {
		host = nil
		var made logr.Logger
		choose := begin(func() {
			set()
			made = klog.Background()
			_ = Start(func() Choose { return nil })
			<-context.Background().Done()
		})
		if choose != nil {
			t.Fatal("main has returned")
		}
		klog.Warning("a")
		made.Error(nil, "b")
		return host
	}
	if got := of(klog.ClearLogger); !slices.Equal(got, []string{"0 a", "8 b"}) {
		t.Errorf("%q", got)
	}
	if got := of(func() { klog.SetLoggerWithOptions(logr.Discard(), klog.ContextualLogger(true)) }); len(got) > 0 {
		t.Errorf("with a logger of its own: %q", got)
	}
}
