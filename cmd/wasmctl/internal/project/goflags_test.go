// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"
	"strings"
	"testing"
)

func TestParseGoFlags_TakesWhatDecidesTheProgramOrRefuses(t *testing.T) {
	for text, want := range map[string]GoFlags{
		"":                      {},
		"-trimpath -mod=mod -v": {modules: "mod"},
		"-mod=vendor":           {modules: "vendor"},
		"-tags=pro,eu":          {Tags: []string{"pro", "eu"}},
		`"-tags=pro eu"`:        {Tags: []string{"pro", "eu"}},
		"-ldflags=-X=main.a=b":  {LDFlags: "-X=main.a=b"},
		`'-ldflags=-s -X "m.a=b c"' --tags=pro -race=false`: {Tags: []string{"pro"}, LDFlags: `-s -X "m.a=b c"`},
	} {
		if got, err := parseGoFlags(text); err != nil || !slices.Equal(got.Tags, want.Tags) || got.LDFlags != want.LDFlags || got.modules != want.modules {
			t.Errorf("%s: got %+v and %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"-race", "-gcflags=-N", "-modfile=x.mod", "-overlay=o.json", "'-tags=pro"} {
		if got, err := parseGoFlags(text); err == nil {
			t.Errorf("%s: got %+v, want an error", text, got)
		}
	}
}

func TestGoFlags_TheLinkerGetsOnlyVariables(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"-s -w -buildid=":                   "",
		"-X=main.image=quay.io/x:1":         " -X main.image=quay.io/x:1",
		"-s -X main.a=b=c --X main.d=":      " -X main.a=b=c -X main.d=",
		`-X 'main.a=b c' "-X=main.q='quo'"`: ` -X 'main.a=b c' -X "main.q='quo'"`,
	} {
		if got, err := (GoFlags{LDFlags: text}).linker(); err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"-extldflags=-static", "-X main.a", "-X", "-linkmode external", `-X=main.a='b"`, `-X 'a.b=c`} {
		if got, err := (GoFlags{LDFlags: text}).linker(); err == nil {
			t.Errorf("%s: got %q, want an error", text, got)
		}
	}
}

// FuzzSplit checks that a quoted word is read back as it was.
func FuzzSplit(f *testing.F) {
	f.Add("main.a=b c")
	f.Add(`it's`)
	f.Fuzz(func(t *testing.T, word string) {
		quoted, err := quote(word)
		if err != nil || word == "" || strings.ContainsAny(word, "\v\f") {
			return
		}
		if got, err := split(" " + quoted + " x"); err != nil || !slices.Equal(got, []string{word, "x"}) {
			t.Errorf("%q: got %q and %v", word, got, err)
		}
	})
}
