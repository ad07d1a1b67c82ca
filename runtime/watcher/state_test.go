// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// phases runs one subscription through steps and returns the reported phases, and the log.
func phases(t *testing.T, source watcher.Source, steps func(*fakeResource, *user)) (seen []string, log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		r := api.of(source.Resource)
		r.set("a", 1)
		var text bytes.Buffer
		set := api.set(watcher.Config{
			Log: slog.New(slog.NewTextHandler(&text, nil)),
			OnChange: func(_ watcher.Source, st watcher.State) {
				seen = append(seen, st.Phase.String())
			},
		})
		r.failWith(errRefused) // until the first step
		u := subscribe(t, set, source)
		u.phase(watcher.Failing)
		steps(r, u)
		u.phase(watcher.Ready)
		if st := u.sub.State(); st.Err != nil || st.Failures != 0 || st.Message != "" {
			t.Errorf("ready with %+v", st)
		}
		u.agrees(r)
		u.end()
		log = text.String()
	})
	return seen, log
}

// Rule 13: without permission to list and watch, the watch is denied and names the missing permission; once it is
// granted, the watch is ready within 5 s.
func TestState_DeniedNamesTheMissingRule(t *testing.T) {
	source := watcher.Source{Resource: configMaps, Namespace: "shop"}
	seen, log := phases(t, source, func(r *fakeResource, u *user) {
		r.failWith(errForbidden)
		after(time.Hour)
		u.phase(watcher.Denied)
		want := "needs the verbs list and watch on configmaps in namespace shop"
		if st := u.sub.State(); !strings.Contains(st.String(), want) {
			t.Errorf("state %q does not say %q", st, want)
		}
		r.failWith(nil)
		after(5 * time.Second)
	})
	if diff := cmp.Diff([]string{"failing", "denied", "syncing", "ready"}, seen); diff != "" {
		t.Error(diff)
	}
	if strings.Count(log, "watch denied") != 1 || !strings.Contains(log, "in namespace shop") {
		t.Errorf("an hour of denials should be one line with the namespace: %s", log)
	}
}

// Rule 13: permission only to list is not enough, and does not look ready.
func TestState_DeniedWithListOnly(t *testing.T) {
	seen, _ := phases(t, watcher.Source{Resource: configMaps}, func(r *fakeResource, u *user) {
		r.failWith(errForbidden, "watch", "stream")
		after(time.Minute)
		u.phase(watcher.Denied)
		r.failWith(nil)
		after(5 * time.Second)
	})
	if diff := cmp.Diff([]string{"failing", "denied", "syncing", "ready"}, seen); diff != "" {
		t.Error(diff)
	}
}

// Rule 13: a missing resource is waited for, and found within 5 s of the creation of its CRD, however long that takes.
func TestState_AbsentUntilTheResourceArrives(t *testing.T) {
	source := watcher.Source{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}}
	seen, log := phases(t, source, func(r *fakeResource, u *user) {
		r.failWith(errNotFound)
		after(24 * time.Hour)
		u.phase(watcher.Absent)
		if u.synced() {
			t.Error("synced with a resource that is not there")
		}
		r.failWith(nil)
		after(5 * time.Second)
		if !u.synced() {
			t.Error("not synced 5 s after the resource has come")
		}
	})
	if diff := cmp.Diff([]string{"failing", "absent", "syncing", "ready"}, seen); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(log, "the API server has no widgets.example.com of version v1") || strings.Count(log, "watch absent") != 1 {
		t.Errorf("log: %s", log)
	}
}

// Rule 13: failing, then ready, reported once each, with the number of objects and the duration.
func TestState_FailingThenReady(t *testing.T) {
	for what, fault := range map[string]error{"refused": errRefused, "internal": errInternal, "busy": errBusy} {
		t.Run(what, func(t *testing.T) {
			seen, log := phases(t, watcher.Source{Resource: configMaps}, func(r *fakeResource, u *user) {
				r.failWith(fault)
				after(20 * time.Second)
				u.phase(watcher.Failing)
				r.failWith(nil)
				after(90 * time.Second)
			})
			if diff := cmp.Diff([]string{"failing", "syncing", "ready"}, seen); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(log, `msg="watch ready" watch=configmaps objects=1 took=`) {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// Rule 13: each transition between the phases, reported once each. The store keeps its content in every phase, and
// changes that happened meanwhile are seen when it is over.
func TestState_EveryEdge(t *testing.T) {
	faults := map[watcher.Phase]error{
		watcher.Denied: errForbidden, watcher.Absent: errNotFound, watcher.Failing: errRefused,
	}
	for from, first := range faults {
		for to, then := range faults {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, b *bed) {
					b.cm.failWith(first)
					b.cm.cut()
					after(time.Minute)
					b.u.phase(from)
					since := b.u.sub.State().Since
					b.cm.failWith(then)
					after(time.Minute)
					b.u.phase(to)
					if st := b.u.sub.State(); st.Since.Equal(since) != (from == to) || st.Failures < 2 {
						t.Errorf("%+v, was %s since %s", st, from, since)
					}
					b.cm.set("a", 2)
					b.u.expect()
					if n := b.u.sub.Store().Len(); n != 2 {
						t.Errorf("the store has %d objects, want 2", n)
					}
					b.cm.failWith(nil)
					after(time.Minute)
					b.u.phase(watcher.Ready)
					if st := b.u.sub.State(); st.Err != nil || st.Failures != 0 {
						t.Errorf("ready with %+v", st)
					}
					b.u.mu.Lock()
					seen := slices.Clone(b.u.events)
					b.u.mu.Unlock()
					if len(seen) != 1 || !strings.HasSuffix(seen[0], " ns/a") {
						t.Errorf("events %v, want one about a", seen)
					}
				})
			})
		}
	}
}

// Rule 14: everything that the API server sends is progress, including bookmarks, and silence is visible as an old
// LastProgress in a phase that is still ready.
func TestState_LastProgressMovesWithEventsAndBookmarks(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		for _, send := range []func(){b.cm.sendBookmark, func() { b.cm.set("a", 2) }} {
			after(2 * time.Minute) // the API server ends the watch after 5 at the earliest
			if age := time.Since(b.u.sub.State().LastProgress); age < 2*time.Minute {
				t.Errorf("progress %s ago although nothing came", age)
			}
			send()
			synctest.Wait()
			if age := time.Since(b.u.sub.State().LastProgress); age != 0 {
				t.Errorf("progress %s ago after an event", age)
			}
		}
	})
}

func TestSource_Names(t *testing.T) {
	s := watcher.Source{
		Resource:  schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Namespace: "shop", LabelSelector: "app=web", FieldSelector: "metadata.name=a",
	}
	if got, want := s.String(), "deployments.apps in shop (app=web) (metadata.name=a)"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if s.Name() != "deployments.apps" || (watcher.Source{Resource: configMaps}).String() != "configmaps" {
		t.Error("Name")
	}
}
