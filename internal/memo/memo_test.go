// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// fixture is a Memo whose module, children and cache a test changes.
type fixture struct {
	*Memo
	subject  Subject
	canary   bool
	children []string
	answer   string
	versions map[string]string // of the cache
}

func newFixture(path string) *fixture {
	f := &fixture{subject: Subject{Revision: 1, Settings: 1, Digest: [32]byte{7}}, answer: "good", versions: map[string]string{"configmapsout": "5"}}
	f.Memo = New(Config{
		Subject: func(abi.Key) (Subject, bool) { return f.subject, !f.canary },
		Children: func(_ abi.Key, uid string, yield func(uid, resourceVersion string)) {
			for _, c := range f.children {
				yield(uid+c, "1")
			}
		},
		Answer: func(_ context.Context, _ uint64, _ abi.Op, req []byte) abi.Response {
			return abi.Response{Body: []byte(f.answer + string(req))}
		},
		Version: func(w *abi.Write) (string, bool) { return f.versions[w.Resource+w.Key.Name], true },
		Path:    path, Key: []byte("key"),
	})
	return f
}

func seen(name string, version int) *applier.Seen {
	v := fmt.Sprint(version)
	return &applier.Seen{Key: abi.Key{Namespace: "shop", Name: name}, UID: "uid-" + name, ResourceVersion: v, Object: []byte("object " + v)}
}

// run simulates a successful run of the object with reads.
func (f *fixture) run(s *applier.Seen, w *abi.Write, action abi.Action, reads ...abi.Read) {
	r := f.Begin(s)
	if w != nil {
		r.Wrote(w, w.Resource != "unwatched")
	}
	for _, read := range reads {
		if read.Op != "" {
			read.Response = f.cfg.Answer(context.Background(), 1, read.Op, read.Request)
		}
		r.Read(read)
	}
	r.Commit(f.subject.Revision, action, time.Now())
}

// skips reports whether the next run of the object would be skipped.
func (f *fixture) skips(s *applier.Seen) bool {
	_, same := f.Recall(context.Background(), s, time.Now())
	return same
}

var applied = &abi.Write{Op: abi.OpAPIApply, Resource: "configmaps", Key: abi.Key{Name: "out"}, ResourceVersion: "5"}

var get = abi.Read{Op: abi.OpCacheGet, Request: []byte("web")}

// TestMemo_SkipsUntilAnythingItReadChanges, but nothing that was not remembered.
func TestMemo_SkipsUntilAnythingItReadChanges(t *testing.T) {
	for name, change := range map[string]func(f *fixture, s *applier.Seen){
		"the object":             func(_ *fixture, s *applier.Seen) { *s = *seen("a", 2) },
		"the bytes alone":        func(_ *fixture, s *applier.Seen) { s.Object = []byte("restored from a backup") },
		"another of its name":    func(_ *fixture, s *applier.Seen) { s.UID = "other" },
		"the module":             func(f *fixture, _ *applier.Seen) { f.subject = Subject{Revision: 2, Settings: 1, Digest: [32]byte{8}} },
		"a canary has it":        func(f *fixture, _ *applier.Seen) { f.canary = true },
		"a child":                func(f *fixture, _ *applier.Seen) { f.children = []string{"-c", "-d"} },
		"a child that is gone":   func(f *fixture, _ *applier.Seen) { f.children = nil },
		"what the cache answers": func(f *fixture, _ *applier.Seen) { f.answer = "other" },
		"what it applied":        func(f *fixture, _ *applier.Seen) { f.versions["configmapsout"] = "6" },
		"somebody asked":         func(f *fixture, s *applier.Seen) { f.Renew([]abi.Key{s.Key}) },
		"somebody asked for all": func(f *fixture, _ *applier.Seen) { f.Renew(nil) },
		"it was gone":            func(f *fixture, s *applier.Seen) { f.Forget(s.Key) },
		"another run has begun":  func(f *fixture, s *applier.Seen) { f.Begin(s) },
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newFixture(""), seen("a", 1)
			f.children = []string{"-c"}
			f.run(s, applied, abi.Action{}, get, abi.Read{Op: abi.OpAPIApply})
			for range 2 {
				if !f.skips(s) {
					t.Fatal("runs although nothing has changed")
				}
			}
			if change(f, s); f.skips(s) {
				t.Error("is skipped")
			}
		})
	}
}

// TestMemo_RemembersOnlyWhatCanBeCompared
func TestMemo_RemembersOnlyWhatCanBeCompared(t *testing.T) {
	source := func(s abi.Source) func(f *fixture, s *applier.Seen) {
		return func(f *fixture, o *applier.Seen) { f.run(o, nil, abi.Action{}, get, abi.Read{Source: s}) }
	}
	for result, run := range map[Result]func(f *fixture, s *applier.Seen){
		Remembered: func(f *fixture, s *applier.Seen) { f.run(s, nil, abi.Action{}, get) },
		Wrote: func(f *fixture, s *applier.Seen) {
			f.run(s, &abi.Write{Op: abi.OpAPIPatch, Resource: "configmaps", ResourceVersion: "5"}, abi.Action{})
		},
		Operation: func(f *fixture, s *applier.Seen) { f.run(s, nil, abi.Action{}, abi.Read{Op: abi.OpAPIGet}) },
		Clock:     source(abi.SourceClock | abi.SourceMetric),
		Random:    source(abi.SourceRandom),
		Limit:     source(abi.SourceLimit),
		Metric:    source(abi.SourceMetric),
		Large: func(f *fixture, s *applier.Seen) {
			f.run(s, nil, abi.Action{}, abi.Read{Op: abi.OpCacheList, Request: make([]byte, maxReads)})
		},
		Changed: func(f *fixture, s *applier.Seen) {
			r := f.Begin(s)
			f.subject.Settings++
			r.Commit(1, abi.Action{}, time.Now())
		},
	} {
		t.Run(results[result], func(t *testing.T) {
			f, s := newFixture(""), seen("a", 1)
			run(f, s)
			if got, want := f.skips(s), result == Remembered; got != want {
				t.Errorf("skipped: %v, want %v", got, want)
			}
			if n := f.Counts()[results[result]]; n != 1 {
				t.Errorf("counted %d times: %v", n, f.Counts())
			}
		})
	}
	for name, w := range map[string]*abi.Write{
		"unwatched":   {Op: abi.OpAPIApply, Resource: "unwatched", ResourceVersion: "5"},
		"subresource": {Op: abi.OpAPIApply, Resource: "configmaps", Subresource: "scale", ResourceVersion: "5"},
		"deleted":     {Op: abi.OpAPIApply, Resource: "configmaps", ResourceVersion: "5", Deleted: true},
	} {
		f, s := newFixture(""), seen("a", 1)
		if f.run(s, w, abi.Action{}); f.skips(s) {
			t.Errorf("%s: skipped", name)
		}
	}
	f, s := newFixture(""), seen("a", 1)
	f.run(s, applied, abi.Action{}, abi.Read{Op: abi.OpAPIApply}, abi.Read{Op: abi.OpAPIApply})
	if f.skips(s) {
		t.Error("an apply that failed counts as one that was accepted")
	}
	f, s = newFixture(""), seen("a", 1)
	r := f.Begin(s)
	f.Renew([]abi.Key{s.Key}) // while it runs
	r.Commit(1, abi.Action{}, time.Now())
	if f.skips(s) {
		t.Error("a run that began before somebody asked for one counts as that one")
	}
}

// TestMemo_ComparesContent if the object is elsewhere in memory, as after a list.
func TestMemo_ComparesContent(t *testing.T) {
	f, s := newFixture(""), seen("a", 1)
	f.run(s, nil, abi.Action{})
	for range 2 { // it is compared by content first, and then by place
		s.Object = bytes.Clone(s.Object)
		if !f.skips(s) || f.entries[s.Key].place != placeOf(&f.subject, digest{}, s.Object) {
			t.Error("runs, or does not know the place")
		}
	}
	f.subject.Revision++ // the same module again
	if !f.skips(s) {
		t.Error("runs with the same module")
	}
}

// TestMemo_KeepsTheTimeOfARequeue, even if the system clock is set back.
func TestMemo_KeepsTheTimeOfARequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFixture(""), seen("a", 1)
		f.run(s, nil, abi.Action{Requeue: true, After: time.Minute})
		recall := func(now time.Time) (abi.Action, bool) { return f.Recall(t.Context(), s, now) }
		now := time.Now()
		for at, want := range map[time.Duration]time.Duration{0: time.Minute, 50 * time.Second: 10 * time.Second, -time.Hour: time.Minute} {
			if action, same := recall(now.Add(at)); !same || !action.Requeue || action.After != want {
				t.Errorf("after %v: %v (%v), want a requeue after %v", at, action, same, want)
			}
		}
		if _, same := recall(now.Add(time.Minute)); same {
			t.Error("skipped when it is due")
		}
		f.run(s, nil, abi.Action{Requeue: true})
		if f.skips(s) {
			t.Error("skipped although it asks to run at once")
		}
	})
}

// TestMemo_IsBounded: beyond the bound, each new object displaces others.
func TestMemo_IsBounded(t *testing.T) {
	f := newFixture("")
	big := abi.Read{Op: abi.OpCacheGet, Request: make([]byte, maxReads-2*maxHead)}
	for i := range 2 * maxBytes / maxReads {
		f.run(seen(fmt.Sprint(i), 1), nil, abi.Action{}, big)
	}
	if f.bytes > maxBytes || f.bytes < maxBytes/2 {
		t.Errorf("%d bytes, want %d at most, and not much less", f.bytes, maxBytes)
	}
	total := 0
	for key, e := range f.entries {
		total += e.size(key)
	}
	if total != f.bytes {
		t.Errorf("%d bytes are counted, there are %d", f.bytes, total)
	}
}

// TestMemo_OutlastsTheProcess: and an unusable file is ignored.
func TestMemo_OutlastsTheProcess(t *testing.T) {
	path := File(filepath.Join(t.TempDir(), "new"), "team/web")
	f, a, b := newFixture(path), seen("a", 1), seen("b", 1)
	ctx, stop := context.WithCancel(t.Context())
	f.run(a, nil, abi.Action{}, get)
	f.run(b, nil, abi.Action{Requeue: true, After: time.Hour})
	stop()
	f.Run(ctx) // which saves at the end
	next := newFixture(path)
	if !next.skips(a) || !next.skips(b) {
		t.Fatal("another process runs what was remembered")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	for name, damage := range map[string]func() []byte{
		"a bit":       func() []byte { c := bytes.Clone(content); c[len(c)/2] ^= 1; return c },
		"the end":     func() []byte { return content[:len(content)-1] },
		"nothing":     func() []byte { return nil },
		"another key": func() []byte { return seal([]byte("other"), f.entries) },
	} {
		if err := os.WriteFile(path, damage(), 0o600); err != nil {
			t.Fatal(err)
		}
		if damaged := newFixture(path); damaged.skips(a) || damaged.Len() != 0 {
			t.Errorf("%s: is used", name)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("saved although nothing has changed")
	}
}

// FuzzOpen: authentic but malformed content is an error, and readable content is written again unchanged.
func FuzzOpen(f *testing.F) {
	entries := map[abi.Key]entry{{Name: "a"}: {version: 1, reads: string(appendRead(nil, lists, []byte("req"), digest{1})), due: 5, after: 6}}
	sealed := seal(nil, entries)
	f.Add(sealed[len(magic) : len(sealed)-32])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		b := append([]byte(magic), body...)
		got, err := open(nil, append(b, macOf(nil, b)...))
		if err != nil {
			return
		}
		again, err := open(nil, seal(nil, got))
		if err != nil || len(again) != len(got) {
			t.Fatalf("%d entries, then %d (%v)", len(got), len(again), err)
		}
		for key, e := range got {
			if again[key] != e {
				t.Fatalf("%v: %v, then %v", key, e, again[key])
			}
			m := newFixture("")
			m.sameReads(t.Context(), &Subject{}, e.reads)
		}
	})
}

// BenchmarkRecall is the cost of skipping a run of an object of 4.7 KB.
func BenchmarkRecall(b *testing.B) {
	for name, c := range map[string]struct {
		reads []abi.Read
		moved bool // its bytes are elsewhere, as after a restart
	}{"object": {}, "object that was moved": {nil, true}, "object and one read of 4.7 KB": {[]abi.Read{get}, false}} {
		b.Run(name, func(b *testing.B) {
			f, s := newFixture(""), seen("a", 1)
			places := [2][]byte{make([]byte, 4700), make([]byte, 4700)}
			s.Object, f.answer = places[0], strings.Repeat("x", 4700)
			f.run(s, nil, abi.Action{}, c.reads...)
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				if c.moved {
					s.Object = places[i%2]
				}
				if !f.skips(s) {
					b.Fatal("not skipped")
				}
			}
		})
	}
}

// BenchmarkRemember is the cost of remembering a run of such an object.
func BenchmarkRemember(b *testing.B) {
	f, s := newFixture(""), seen("a", 1)
	s.Object = make([]byte, 4700)
	b.ReportAllocs()
	for b.Loop() {
		f.run(s, nil, abi.Action{})
	}
}
