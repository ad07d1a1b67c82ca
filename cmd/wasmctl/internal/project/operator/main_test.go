// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestMain_OptionsWinOverTheFile: arguments are replaced as a whole, and the environment by name.
// Without adds up.
func TestMain_OptionsWinOverTheFile(t *testing.T) {
	file := Main{Args: []string{"--a", "--b"}, Env: map[string]string{"X": "1", "Y": "1"}, Without: []string{"webhooks"}}
	got := Main{Args: []string{"--c"}, Env: map[string]string{"Y": "2"}, Without: []string{"sources"}}.Over(file)
	if !slices.Equal(got.Args, []string{"--c"}) || !maps.Equal(got.Env, map[string]string{"X": "1", "Y": "2"}) || !slices.Equal(got.Without, []string{"webhooks", "sources"}) {
		t.Errorf("%+v", got)
	}
	if file.Env["Y"] != "1" {
		t.Error("the file's environment has changed")
	}
	if got := (Main{}).Over(file); len(got.Args) != 2 || len(got.Env) != 2 {
		t.Errorf("no options: %+v", got)
	}
}

// TestMain_LinkerFlagsNeedNoQuotes: whatever the values are.
func TestMain_LinkerFlagsNeedNoQuotes(t *testing.T) {
	got, err := Main{Args: []string{`it's "a" b`}, Env: map[string]string{"A": "x\ny = 'z'"}}.linkerFlags(found{})
	if err != nil || strings.ContainsAny(got[1:], `'"`) || len(strings.Fields(got)) != 2 {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := (Main{}).linkerFlags(found{}); got != "" || err != nil {
		t.Errorf("nothing: %q, %v", got, err)
	}
	if _, err := (Main{Env: map[string]string{"": "x"}}).linkerFlags(found{}); err == nil {
		t.Error("an empty name is no error")
	}
	if _, err := (Main{Without: []string{"reconcile"}}).linkerFlags(found{}); err == nil || !strings.Contains(err.Error(), "webhooks, runnables, sources") {
		t.Errorf("without something else: %v", err)
	}
}

// TestOlder_ComparesWhatAProjectPins: it compares pseudo-versions too, and ignores other texts.
func TestOlder_ComparesWhatAProjectPins(t *testing.T) {
	for pinned, want := range map[string]bool{"v0.33.2": true, "v0.34.0": false, "v0.35.1": false, "": false, "v0.0.0-20250101000000-0123456789ab": true} {
		if got := older(pinned, "v0.34.0"); got != want {
			t.Errorf("%q: %t", pinned, got)
		}
	}
}
