// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// waiting starts AwaitVersion in the bubble and returns whether it has ended once everything else is idle.
func waiting(t *testing.T, s *reflector.Store, ref reflector.ObjectRef, version string) (over func() bool) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.AwaitVersion(t.Context(), ref, version) }()
	return func() bool {
		t.Helper()
		synctest.Wait()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return true
		default:
			return false
		}
	}
}

// Rule 22: a wait ends with the object's own event, with a later event of another object, with a bookmark, and with a
// list: when the version is included, and not before.
func TestStore_AwaitVersionEndsWithTheVersion(t *testing.T) {
	for what, reach := range map[string]func(*reflector.Writer, int){
		"own event": func(w *reflector.Writer, v int) { w.Apply(state(t, name("a"), 1, v), func(reflector.Event) {}) },
		"other's event": func(w *reflector.Writer, v int) {
			w.Apply(state(t, name("b"), 2, v), func(reflector.Event) {})
		},
		"deletion": func(w *reflector.Writer, v int) {
			w.Apply(state(t, name("c"), 3, v-1), func(reflector.Event) {})
			w.Delete(state(t, name("c"), 3, v), func(reflector.Event) {})
		},
		"bookmark": func(w *reflector.Writer, v int) { w.Advance(strconv.Itoa(v)) },
		"list":     func(w *reflector.Writer, v int) { w.Replace(nil, strconv.Itoa(v), func(reflector.Event) {}) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := reflector.NewWriter()
				w.Replace(nil, "90", func(reflector.Event) {})
				exact := waiting(t, w.Store(), name("a"), "100")
				earlier := waiting(t, w.Store(), name("a"), "97")
				if reach(w, 95); exact() || earlier() {
					t.Error("a wait is over before its version")
				}
				if reach(w, 99); exact() || !earlier() {
					t.Error("want the earlier one over, and no other")
				}
				if reach(w, 100); !exact() {
					t.Error("the version is in and the wait not over")
				}
				if now := waiting(t, w.Store(), name("a"), "100"); !now() {
					t.Error("a version that is in is waited for")
				}
			})
		})
	}
}

// A version that cannot be compared is not waited for; one that is not reached ends with the context, and leaves
// nothing behind.
func TestStore_AwaitVersionGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reflector.NewWriter()
		w.Replace(nil, "9", func(reflector.Event) {})
		for _, version := range []string{"", "0", "abc", "007"} {
			if err := w.Store().AwaitVersion(t.Context(), name("a"), version); err != nil {
				t.Errorf("%q: %v", version, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		err := w.Store().AwaitVersion(ctx, name("a"), "10")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("ended with %v after %s", err, time.Since(start))
		}
		w.Advance("10")
	})
}

// Without a numbered list, the versions of other objects mean nothing: a watch then starts with all objects, in no
// order. The object's own version still counts.
func TestStore_AwaitVersionWithoutNumberedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reflector.NewWriter()
		for range 2 { // before a list, and after one without a version
			over := waiting(t, w.Store(), name("a"), "100")
			w.Apply(state(t, name("b"), 2, 200), func(reflector.Event) {})
			w.Advance("200")
			if over() {
				t.Error("over by another object's version")
			}
			w.Apply(state(t, name("a"), 1, 100), func(reflector.Event) {})
			if !over() {
				t.Error("not over by the object's own version")
			}
			if v := w.Store().Version(); v != "" {
				t.Errorf("Version = %q", v)
			}
			w.Replace(nil, "", func(reflector.Event) {})
		}
	})
}

// A list counts even if its version is lower: after a restore from a backup, versions are lower.
func TestStore_VersionFollowsTheList(t *testing.T) {
	w := reflector.NewWriter()
	for _, v := range []string{"500", "90"} {
		w.Replace(nil, v, func(reflector.Event) {})
		if got := w.Store().Version(); got != v {
			t.Errorf("Version = %q, want %q", got, v)
		}
	}
	w.Advance("80") // a late bookmark
	if got := w.Store().Version(); got != "90" {
		t.Errorf("Version = %q, want 90", got)
	}
}
