// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A command, an option or a field that the process does not have is an error that names the version of the process, not ignored.
func TestAdmin_ARequestOfANewerVersionIsRefused(t *testing.T) {
	c, _ := serve(t, &process{})
	for what, do := range map[string]func() error{
		"later": func() error {
			_, err := post[struct{}](t.Context(), c, "web", "later", struct{}{})
			return err
		},
		`"careful"`: func() error {
			_, err := post[struct{}](t.Context(), c, "web", "trigger", map[string]bool{"careful": true})
			return err
		},
		`"slowly"`: func() error {
			_, err := post[struct{}](t.Context(), c, "web", "swap?slowly=true", struct{}{})
			return err
		},
		`"of"`: func() error { return c.do(t.Context(), http.MethodGet, "status?of=web", nil, &Status{}) },
	} {
		err := do()
		if err == nil || !strings.Contains(err.Error(), "the process is wasmctl v1, which does not know "+what+": use that version") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The answers of the released version have no field that this version does not read. docs/compatibility.md promises that a field stays.
func TestAdmin_ReadsTheAnswersOfTheRelease(t *testing.T) {
	for file, into := range map[string]any{"status.json": &Status{}, "explain.json": &explainResponse{}, "top.json": &Top{}} {
		f, err := os.Open("testdata/released/" + file)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(f)
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		_ = f.Close()
	}
}
