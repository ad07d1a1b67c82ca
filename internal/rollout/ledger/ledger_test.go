// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// A restart reads the entry that the leader has written: which module passed last, and
// which ones must not be tried again.
func TestEntry_SurvivesARestart(t *testing.T) {
	dir := Dir(t.TempDir() + "/state")
	read := func() Entry {
		e, err := Read(t.Context(), dir, "web")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	write := func(e Entry) {
		if err := Write(t.Context(), dir, "web", e); err != nil {
			t.Fatal(err)
		}
	}
	if e := read(); e.Live != "" || len(e.Failed) > 0 {
		t.Fatalf("before anything was written: %+v", e)
	}
	write(read().Proven("one", time.Now()))
	write(read().RolledBack(Failure{Digest: "two", Reason: "it traps", Time: time.Unix(0, 0)}, "one"))
	e := read()
	f, ok := e.Failure("two")
	if e.Live != "one" || !ok || f.String() != "was rolled back at 1970-01-01T00:00:00Z: it traps" {
		t.Errorf("%+v", e)
	}
	if late := e.Proven("two", time.Unix(-1, 0)); late.Live != "one" || len(late.Failed) != 1 {
		t.Errorf("another replica has rolled it back meanwhile: %+v", late)
	}
	write(e.Proven("two", time.Now())) // it was tried again by force
	if e := read(); e.Live != "two" || len(e.Failed) > 0 {
		t.Errorf("%+v", e)
	}
	if other, err := Read(t.Context(), dir, "other"); err != nil || other.Live != "" {
		t.Errorf("of another controller: %+v, %v", other, err)
	}
}

func TestEntry_IsBounded(t *testing.T) {
	var e Entry
	for i := range 100 {
		e = e.RolledBack(Failure{Digest: fmt.Sprint(i), Reason: strings.Repeat("ä", 1<<20)}, "good")
	}
	if len(e.Failed) != maxFailed || e.Failed[maxFailed-1].Digest != "99" || len(e.Failed[0].Reason) > maxReason {
		t.Errorf("%d failures, reasons of %d bytes", len(e.Failed), len(e.Failed[0].Reason))
	}
}

func TestDir_KeepsTheLiveModule(t *testing.T) {
	dir := Dir(t.TempDir())
	if b, err := dir.Module("web"); b != nil || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	for _, wasm := range []string{"one", "two"} {
		if err := dir.SetModule("web", []byte(wasm)); err != nil {
			t.Fatal(err)
		}
		if b, err := dir.Module("web"); string(b) != wasm || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
}

type notes map[string]string

func (n notes) Note(_ context.Context, key string) (string, error) { return n[key], nil }
func (n notes) SetNote(_ context.Context, key, value string) error { n[key] = value; return nil }

// The entry of the released version is read, with and without a field of a later one.
// TestDir_NamesDoNotCollide: the files of controllers are distinct, also if one is named like the file of another.
func TestDir_NamesDoNotCollide(t *testing.T) {
	dir := Dir(t.TempDir())
	write := map[string]func(name, text string) error{
		"note":    func(name, text string) error { return dir.SetNote(t.Context(), Key(name), text) },
		"module":  func(name, text string) error { return dir.SetModule(name, []byte(text)) },
		"history": func(name, text string) error { return dir.SetHistory(name, []byte(text)) },
	}
	read := map[string]func(name string) string{
		"note":    func(name string) string { s, _ := dir.Note(t.Context(), Key(name)); return s },
		"module":  func(name string) string { b, _ := dir.Module(name); return string(b) },
		"history": func(name string) string { b, _ := dir.History(name); return string(b) },
	}
	names := []string{"a", "a.history", "a.changes", "a.json", "a.wasm", "a.history.json"}
	for _, name := range names {
		for what, do := range write {
			if err := do(name, what+" of "+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range names {
		for what, do := range read {
			if got := do(name); got != what+" of "+name {
				t.Errorf("%s of %s: %q", what, name, got)
			}
		}
	}
}

func TestRead_OfOtherVersions(t *testing.T) {
	b, err := os.ReadFile("testdata/released/entry.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(b), `{"later":[1],` + string(b[1:])} {
		e, err := Read(t.Context(), notes{Key("web"): text}, "web")
		if err != nil || e.Live == "" || len(e.Failed) != 1 || e.Failed[0].Reason == "" || e.Failed[0].Time.IsZero() {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"live":"x","failed":[{"digest":"y","reason":"z","time":"2026-01-01T00:00:00Z"}]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		n := notes{Key("c"): text}
		e, err := Read(t.Context(), n, "c")
		if err != nil {
			return
		}
		if err := Write(t.Context(), n, "c", e); err != nil {
			t.Fatal(err)
		}
	})
}
