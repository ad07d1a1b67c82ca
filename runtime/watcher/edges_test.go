// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// edge is one thing that can happen to a watch: the bytes that the API server sends after a list of a/5 and b/6 at
// version 10, and the expected result.
type edge struct {
	name     string
	on       string        // sent on the watch that the list came on, which then ends
	open     bool          // it does not end
	err      error         // it ends with this error
	replies  []reply       // responses to the following requests
	requests []string      // all after the first
	events   []string      // all after the list
	content  string        // of the store, at the end
	fails    bool          // the watch is failing in between
	within   time.Duration // the maximum duration; 0 means at once
}

const second = time.Second

var edges = []edge{{
	name: "in good order: resumed", on: lines("MODIFIED a 11"),
	requests: []string{"watch 11"}, events: []string{"Applied a"}, content: "a/11 b/6", within: 2 * second,
}, {
	name: "bookmark only: resumed there", on: bookmark("20", false),
	requests: []string{"watch 20"}, content: "a/5 b/6", within: 2 * second,
}, {
	name: "410 at the start of a watch: listed again", on: lines("MODIFIED a 11"),
	replies:  []reply{refusal(410, "Expired"), {body: lines("ADDED a 12", "ADDED c 13") + bookmark("20", true), open: true}},
	requests: []string{"watch 11", "stream 11"},
	events:   []string{"Applied a", "Relisted a", "Deleted b", "Relisted c"}, content: "a/12 c/13", within: 5 * second,
}, {
	name: "410 as an event: listed again", on: encodeLine("ERROR", failure(410, "Expired")),
	replies:  []reply{{body: lines("ADDED a 5", "ADDED b 12") + bookmark("20", true), open: true}},
	requests: []string{"stream 10"}, events: []string{"Relisted b"}, content: "a/5 b/12", within: 5 * second,
}, {
	name: "410 for the streamed list too: asked for without a version",
	on:   encodeLine("ERROR", failure(410, "Expired")),
	replies: []reply{
		{body: encodeLine("ERROR", failure(410, "Expired"))}, {body: lines("ADDED a 5") + bookmark("20", true), open: true},
	},
	requests: []string{"stream 10", "stream"}, events: []string{"Deleted b"}, content: "a/5", within: 8 * second,
}, {
	name: "429 with Retry-After: waits as it is told to, resumes, lists nothing", on: line("MODIFIED a 11"),
	replies:  []reply{{status: 429, header: http.Header{"Retry-After": {"7"}}, body: "{}"}, {body: lines("MODIFIED b 12"), open: true}},
	requests: []string{"watch 11", "watch 11"}, events: []string{"Applied a", "Applied b"}, content: "a/11 b/12", within: 9 * second,
}, {
	name: "429 as an event: resumed", on: encodeLine("ERROR", failure(429, "TooManyRequests")), fails: true,
	requests: []string{"watch 10"}, content: "a/5 b/6", within: 3 * second,
}, {
	name: "500: listed at the last version", on: line("MODIFIED a 11"),
	replies:  []reply{refusal(500, "InternalError"), {body: lines("ADDED a 11", "ADDED b 6", "ADDED c 12") + bookmark("20", true), open: true}},
	requests: []string{"watch 11", "stream 11"}, events: []string{"Applied a", "Relisted c"}, content: "a/11 b/6 c/12", fails: true, within: 5 * second,
}, {
	name: "500 as an event: listed again", on: encodeLine("ERROR", failure(500, "InternalError")), fails: true,
	replies:  []reply{{body: streamed(""), open: true}},
	requests: []string{"stream 10"}, content: "a/5 b/6", within: 3 * second,
}, {
	name:     "ended at once without a change: listed again, after a while",
	replies:  []reply{{body: streamed(""), open: true}},
	requests: []string{"stream 10"}, content: "a/5 b/6", within: 3 * second,
}, {
	name: "reset: resumed", on: lines("DELETED b 11"), err: syscall.ECONNRESET,
	requests: []string{"watch 11"}, events: []string{"Deleted b"}, content: "a/5", within: 2 * second,
}, {
	name: "cut in the middle of an event: resumed before it", on: line("MODIFIED a 11") + line("MODIFIED b 12")[:40],
	replies:  []reply{{body: line("MODIFIED b 12"), open: true}},
	requests: []string{"watch 11"}, events: []string{"Applied a", "Applied b"}, content: "a/11 b/12", within: 2 * second,
}, {
	name: "no JSON: listed again", on: line("MODIFIED a 11") + "<html>gateway</html>\n", fails: true,
	replies:  []reply{{body: lines("ADDED a 11", "ADDED b 12") + bookmark("12", true), open: true}},
	requests: []string{"stream 11"}, events: []string{"Applied a", "Relisted b"}, content: "a/11 b/12", within: 5 * second,
}, {
	name: "an unknown type of event: listed again", on: line("RENAMED a 11"), fails: true,
	replies:  []reply{{body: lines("ADDED a 11", "ADDED b 6") + bookmark("12", true), open: true}},
	requests: []string{"stream 10"}, events: []string{"Relisted a"}, content: "a/11 b/6", within: 5 * second,
}, {
	name: "the same event twice: one", on: lines("MODIFIED a 11", "MODIFIED a 11", "DELETED b 12", "DELETED b 12"), open: true,
	events: []string{"Applied a", "Deleted b"}, content: "a/11",
}, {
	name: "an older state: versions have run backwards", on: lines("MODIFIED a 11", "MODIFIED a 9"), open: true,
	replies: []reply{{body: streamed(""), open: true, after: time.Millisecond}}, requests: []string{"stream"},
	events: []string{"Applied a", "Relisted a"}, content: "a/5 b/6", within: second,
}, {
	name: "an older deletion: versions have run backwards", on: lines("ADDED a 12 other", "DELETED a 11"), open: true,
	replies: []reply{{body: streamed(""), open: true, after: time.Millisecond}}, requests: []string{"stream"},
	events: []string{"Deleted a", "Applied a", "Deleted a", "Relisted a"}, content: "a/5 b/6", within: second,
}, {
	name: "an older bookmark: versions have run backwards", on: lines("MODIFIED a 11") + bookmark("9", false), open: true,
	replies: []reply{{body: streamed(""), open: true, after: time.Millisecond}}, requests: []string{"stream"},
	events: []string{"Applied a", "Relisted a"}, content: "a/5 b/6", within: second,
}, {
	name: "an object too large to pack: left out", open: true,
	on:     encodeLine("ADDED", hugeObject()) + line("ADDED c 13"),
	events: []string{"Applied c"}, content: "a/5 b/6 c/13",
}, {
	name: "no name, no metadata: left out", open: true,
	on: encodeLine("ADDED", map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}) +
		encodeLine("ADDED", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"resourceVersion": "12"}}) + line("ADDED c 13"),
	events: []string{"Applied c"}, content: "a/5 b/6 c/13",
}}

func hugeObject() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "huge", "namespace": "ns", "uid": "uhuge", "resourceVersion": "12"},
		"data":     map[string]any{"k": strings.Repeat("x", abi.MaxBytes)},
	}
}

// Rules 11 and 12: whatever happens to a watch, in virtual time and through the real client, nothing is lost, nothing
// comes twice, and it lists again only if it must.
func TestEdges_OfAWatch(t *testing.T) {
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			onWire(t, func(t *testing.T, w *wire, start func() *user) {
				w.then(reply{body: streamed(e.on), open: e.open, err: e.err})
				w.then(e.replies...)
				var failed bool
				u := start()
				for range 40 { // 10 s, to see the state of the watch in between
					synctest.Wait()
					failed = failed || u.sub.State().Phase == watcher.Failing
					if e.within > 0 {
						pass(e.within / 40)
					}
				}
				u.expect(append([]string{"Listed ns/a", "Listed ns/b"}, inNamespace(e.events)...)...)
				w.took(append([]string{"stream"}, e.requests...)...)
				if got := content(u); got != e.content {
					t.Errorf("store has %s, want %s", got, e.content)
				}
				u.phase(watcher.Ready)
				if failed != e.fails {
					t.Errorf("failing in between: %t, want %t", failed, e.fails)
				}
			})
		})
	}
}

func inNamespace(events []string) []string {
	list := make([]string, len(events))
	for i, ev := range events {
		list[i] = strings.Replace(ev, " ", " ns/", 1)
	}
	return list
}

// What can happen to the first list. No object is considered deleted, nothing is synced before a complete list has
// arrived, and each watch recovers by itself.
func TestEdges_OfTheFirstList(t *testing.T) {
	noStreams := refusal(422, "Invalid")
	watching := reply{open: true}
	for name, c := range map[string]struct {
		replies  []reply
		requests []string
		content  string
	}{
		"empty, streamed": {[]reply{{body: bookmark("10", true), open: true}}, []string{"stream"}, ""},
		"empty, plain": {
			[]reply{noStreams, {body: listOf("10", "")}, watching},
			[]string{"stream", "list 0", "watch 10"},
			"",
		},
		"paged": {
			[]reply{noStreams, {body: listOf("10", "p2", "a 5")}, {body: listOf("10", "p3", "b 6")}, {body: listOf("10", "", "c 7")}, watching},
			[]string{"stream", "list 0", "page p2", "page p3", "watch 10"},
			"a/5 b/6 c/7",
		},
		"410 between pages: the whole list": {
			[]reply{noStreams, {body: listOf("10", "p2", "a 5")}, refusal(410, "Expired"), {body: listOf("12", "", "b 11")}, watching},
			[]string{"stream", "list 0", "page p2", "list 0", "watch 12"},
			"b/11",
		},
		"cut short, then whole": {
			[]reply{noStreams, {body: listOf("10", "", "a 5", "b 6")[:150]}, {body: streamed(""), open: true}},
			[]string{"stream", "list 0", "stream"},
			"a/5 b/6",
		},
		"no JSON, then whole": {
			[]reply{{body: "<html>", err: nil}, {body: "<html>"}, {body: streamed(""), open: true}},
			[]string{"stream", "list 0", "stream"},
			"a/5 b/6",
		},
		"stream cut before its end, then whole": {
			[]reply{{body: line("ADDED gone 3")}, {body: streamed(""), open: true}},
			[]string{"stream", "stream"},
			"a/5 b/6",
		},
		"refused, then there": {
			[]reply{{err: syscall.ECONNREFUSED}, {err: syscall.ECONNREFUSED}, {body: streamed(""), open: true}},
			[]string{"stream", "stream", "stream"},
			"a/5 b/6",
		},
		"no version: watched from the start": {
			[]reply{noStreams, {body: listOf("", "", "a 5")}, {body: lines("ADDED a 5", "ADDED b 6"), open: true}},
			[]string{"stream", "list 0", "watch"},
			"a/5 b/6",
		},
		"a deletion within the streamed list": {
			[]reply{{body: lines("ADDED a 5", "ADDED x 6", "DELETED x 9") + bookmark("10", true), open: true}},
			[]string{"stream"},
			"a/5",
		},
		"version too large: asked for without one": {
			[]reply{tooLarge(), {body: streamed(""), open: true}},
			[]string{"stream", "stream"},
			"a/5 b/6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, func(t *testing.T, w *wire, start func() *user) {
				w.then(c.replies...)
				u := start()
				after(30 * time.Second)
				w.took(c.requests...)
				if got := content(u); got != c.content || !u.synced() {
					t.Errorf("synced %t, store has %q, want %q", u.synced(), got, c.content)
				}
				u.phase(watcher.Ready)
			})
		})
	}
}

func tooLarge() reply {
	return reply{status: 504, body: `{"apiVersion":"v1","kind":"Status","status":"Failure","code":504,"reason":"Timeout",
		"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}`}
}

// Rule 14: a watch that is silent but is never closed is abandoned 30 s after the API server should have ended it, and
// resumed; the user is notified in between.
func TestEdges_SilentWatchIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		b.cm.mu.Lock()
		b.cm.stall = true
		b.cm.mu.Unlock()
		b.cm.set("c", 1) // the user is not notified
		start := time.Now()
		for b.u.sub.State().Phase == watcher.Ready {
			after(time.Second)
			if time.Since(start) > 10*time.Minute+31*time.Second {
				t.Fatalf("still ready after %s", time.Since(start))
			}
		}
		if age := time.Since(start); age < 5*time.Minute+30*time.Second {
			t.Errorf("given up after %s, before its time", age)
		}
		if st := b.u.sub.State(); !strings.Contains(st.String(), "the connection is dead") {
			t.Errorf("state: %s", st)
		}
		b.cm.mu.Lock()
		b.cm.stall = false
		b.cm.mu.Unlock()
		after(2 * time.Second)
		b.u.expect("Applied ns/c")
		b.u.phase(watcher.Ready)
		if got := fmt.Sprint(b.cm.took()); got != "[watch 12]" {
			t.Errorf("requests: %s, want the watch resumed", got)
		}
	})
}

// Rule 14: the same applies to a list that is not answered.
func TestEdges_UnansweredListIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		cm := api.of(configMaps)
		cm.set("a", 1)
		cm.failWith(errNoStreams, "stream")
		cm.hang = time.Millisecond
		u := subscribe(t, api.set(watcher.Config{}), watcher.Source{Resource: configMaps})
		after(5*time.Minute + time.Second/2)
		u.phase(watcher.Failing)
		if st := u.sub.State(); !strings.Contains(st.String(), "has not answered in time") {
			t.Errorf("state: %s", st)
		}
	})
}

// Rule 14: no behavior of an API server makes a watch look stalled; only a watch that has stalled does.
func TestState_StalledIsAboutTheWatchAlone(t *testing.T) {
	for name, set := range map[string]func(*fakeResource){
		"quiet":    func(*fakeResource) {},
		"silent":   func(r *fakeResource) { r.stall = true },
		"refusing": func(r *fakeResource) { r.fault = func(string) error { return errRefused } },
		"denying":  func(r *fakeResource) { r.fault = func(string) error { return errForbidden } },
		"absent":   func(r *fakeResource) { r.fault = func(string) error { return errNotFound } },
		"busy":     func(r *fakeResource) { r.fault = func(string) error { return errBusyForAnHour } },
		"hanging":  func(r *fakeResource) { r.hang, r.fault = second, func(string) error { return errNoStreams } },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bed) {
				b.cm.mu.Lock()
				set(b.cm)
				b.cm.mu.Unlock()
				b.cm.cut()
				for range 24 * 60 {
					after(time.Minute)
					if st := b.u.sub.State(); st.Stalled(time.Now()) {
						t.Fatalf("stalled: %+v", st)
					}
				}
			})
		})
	}
	now := time.Now()
	long := now.Add(-13 * time.Minute)
	for _, c := range []struct {
		st   watcher.State
		want bool
	}{
		{watcher.State{}, false}, // never started
		{watcher.State{Since: long, LastAttempt: long, LastProgress: long}, true},
		{watcher.State{Since: long, LastAttempt: long, LastProgress: now.Add(-time.Minute)}, false},
		{watcher.State{Since: long, LastAttempt: now.Add(-time.Minute), LastProgress: long}, false},
	} {
		if got := c.st.Stalled(now); got != c.want {
			t.Errorf("%+v: stalled is %t", c.st, got)
		}
	}
}
