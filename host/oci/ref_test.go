// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/failure"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	for s, want := range map[string]oci.Ref{
		"oci://ghcr.io/a/b":                       {Host: "ghcr.io", Repository: "a/b", Tag: "latest"},
		"ghcr.io/a/b:1.2":                         {Host: "ghcr.io", Repository: "a/b", Tag: "1.2"},
		"oci://localhost:5000/b:v1@" + someDigest: {Host: "localhost:5000", Repository: "b", Tag: "v1", Digest: someDigest},
		"oci://h/b@" + someDigest:                 {Host: "h", Repository: "b", Digest: someDigest},
		"oci://h/b:^1.2":                          {Host: "h", Repository: "b", Range: "^1.2"},
		"oci://h/b:1.x":                           {Host: "h", Repository: "b", Range: "1.x"},
		"oci://h/b:x":                             {Host: "h", Repository: "b", Tag: "x"},
	} {
		if got, err := oci.Parse(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "oci://", "oci://ghcr.io", "oci:///b", "oci://h/", "oci://h/B", "oci://h/b:", "oci://h/b@", "oci://h/b@sha256:12", "oci://h/a:1/b",
		"oci://h/b@sha512:" + strings.Repeat("0", 128), "oci://u:p@h/b", "oci://h/../b", "oci://h/b?x", "oci://h/b#x", "https://h/b", "oci://h/b:^one",
		"oci://h/b:~", "oci://h /b", "oci://h/b:1\n", "oci://h/b@" + strings.ToUpper(someDigest), "oci://h/b:" + strings.Repeat("1", 129),
	} {
		if got, err := oci.Parse(s); failure.Of(err) != failure.Usage || got != (oci.Ref{}) {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
}

// What is parsed is written so that it is parsed again, and is safe in a URL.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"oci://ghcr.io/a/b", "h:1/b:1.x@" + someDigest, "oci://[::1]:5000/a:^1", "oci://h/b:*", "h/a//b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := oci.Parse(s)
		if err != nil {
			return
		}
		again, err := oci.Parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q: %v: %+v, %v", s, r, again, err)
		}
		if strings.ContainsAny(r.Host+r.Repository+r.Tag, "?#% @\\\n") || strings.Contains("/"+r.Repository+"/", "/../") || r.Name() == "" {
			t.Errorf("%q: %+v", s, r)
		}
		if r.Tag == "" && r.Range == "" && !r.Pinned() {
			t.Errorf("%q means nothing", s)
		}
	})
}

// A range against a model: semantic versioning's own words.
func TestRange_Model(t *testing.T) {
	type v [3]int
	var all []v
	for a := range 3 {
		for b := range 3 {
			for c := range 3 {
				all = append(all, v{a, b, c})
			}
		}
	}
	for _, base := range all {
		for form, in := range map[string]func(v) bool{
			"^%d.%d.%d": func(x v) bool {
				if base[0] > 0 {
					return x[0] == base[0]
				}
				return x[0] == 0 && x[1] == base[1] && (base[1] > 0 || x[2] == base[2])
			},
			"~%d.%d.%d": func(x v) bool { return x[0] == base[0] && x[1] == base[1] },
			"%d.%d.x":   func(x v) bool { return x[0] == base[0] && x[1] == base[1] && base[2] == 0 },
			"%d.x":      func(x v) bool { return x[0] == base[0] && base[1] == 0 && base[2] == 0 },
		} {
			args := []any{base[0], base[1], base[2]}[:strings.Count(form, "%")]
			if n := len(args); n < 3 && base[2] != 0 || n < 2 && base[1] != 0 {
				continue
			}
			r := fmt.Sprintf(form, args...)
			for _, x := range all {
				tag := fmt.Sprintf("v%d.%d.%d", x[0], x[1], x[2])
				atLeast := x[0] > base[0] || x[0] == base[0] && (x[1] > base[1] || x[1] == base[1] && x[2] >= base[2])
				if got := oci.Highest(r, []string{tag, tag + "-rc.1", "other"}) == tag; got != (in(x) && atLeast) {
					t.Errorf("%s of %s: %v", tag, r, got)
				}
			}
		}
	}
	for r, want := range map[string]string{"^1": "1.9.0", "~1": "1.9.0", "^1.2": "1.9.0", "~1.2": "1.2.5", "^0.3": "0.3.1", "^0": "0.4.0", "*": "2.0.0", "3.x": ""} {
		if got := oci.Highest(r, []string{"1.2.5", "1.9.0", "0.3.1", "0.4.0", "2.0.0", "2.0", "latest"}); got != want {
			t.Errorf("%s: %q, want %q", r, got, want)
		}
	}
}
