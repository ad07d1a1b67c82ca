package grant

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var digestA, digestB = "sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("0b", 32)

// bound is a document that is bound to digests, and grants a resource.
func bound(digests, resource string) string {
	return "apiVersion: wasmctl.dev/v1\nkind: Grant\ndigest: " + digests + "\ncapabilities:\n- {resource: " + resource + ", verbs: [get]}\n"
}

// TestFor_EachModuleHasItsDocuments: a document that is bound gives a module with
// another digest nothing, and several give each module its own.
func TestFor_EachModuleHasItsDocuments(t *testing.T) {
	const open = "apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities: [{resource: leases, verbs: [get]}]\n"
	text := strings.Join([]string{bound(digestA, "pods"), bound(digestB, "nodes"), bound("["+digestA+", "+digestB+"]", "events"), open}, "---\n")
	f, err := Parse("g.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	other := "sha256:" + strings.Repeat("c", 64)
	for digest, want := range map[string]string{digestA: "pods events leases", digestB: "nodes events leases", other: "leases", "": "leases"} {
		of, others := f.For(digest)
		var got []string
		rules, _ := of.Rules("")
		for i := range rules {
			got = append(got, rules[i].Resource)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", digest, diff)
		}
		if named := slices.Contains(others, digestA) && slices.Contains(others, digestB); named != (want == "leases") {
			t.Errorf("%s: others are %v", digest, others)
		}
	}
}

// TestParse_ADigestIsWhole: what is not a whole digest binds to nothing that could
// run, or to more than was meant.
func TestParse_ADigestIsWhole(t *testing.T) {
	for digest, want := range map[string]string{
		digestA[:70]:                           "g.yaml:3:9: digest: \"sha256:aaa",
		digestA + "a":                          "64 hexadecimal digits",
		strings.ToUpper(digestA):               "64 hexadecimal digits",
		strings.TrimPrefix(digestA, "sha256:"): "want sha256:",
		"sha512:" + digestA[7:]:                "want sha256:",
		"'" + digestA + "\n\n '":               "64 hexadecimal digits",
		"''":                                   "64 hexadecimal digits",
		"~":                                    "digest: want one value",
		"":                                     "digest: want one value",
		"{}":                                   "digest: want one value",
		"[]":                                   "digest: is empty: omit it",
		"[[" + digestA + "]]":                  "digest: want one value",
		"[" + digestA + ", ~]":                 "digest: want one value",
		"\n- " + digestA + "\n- x":             "g.yaml:5:3: digest: \"x\"",
	} {
		if f, err := Parse("g.yaml", []byte(bound(digest, "pods"))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v, %v\nwant ...%s...", digest, f, err, want)
		}
	}
}
