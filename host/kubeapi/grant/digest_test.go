// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var digestA, digestB = "sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("0b", 32)

// bound is a document that is bound to digests, and grants a resource.
func bound(digests, resource string) string {
	return "apiVersion: wasmctl.dev/v1\nkind: Grant\ndigests: " + digests + "\ncapabilities:\n- {resource: " + resource + ", verbs: [get]}\n"
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
		of, others := f.For(digest, nil)
		var got []string
		rules, _ := of.Rules("")
		for i := range rules {
			got = append(got, rules[i].Resource)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", digest, diff)
		}
		if named := slices.Contains(others.Digests, digestA) && slices.Contains(others.Digests, digestB); named != (want == "leases") {
			t.Errorf("%s: others are %v", digest, others)
		}
	}
}

// TestParse_ADigestIsWhole: a partial digest would bind to nothing that could run, or to more than
// intended.
func TestParse_ADigestIsWhole(t *testing.T) {
	for digest, want := range map[string]string{
		digestA[:70]:                           "g.yaml:3:10: digests: \"sha256:aaa",
		digestA + "a":                          "64 hexadecimal digits",
		strings.ToUpper(digestA):               "64 hexadecimal digits",
		strings.TrimPrefix(digestA, "sha256:"): "want sha256:",
		"sha512:" + digestA[7:]:                "want sha256:",
		"'" + digestA + "\n\n '":               "64 hexadecimal digits",
		"''":                                   "64 hexadecimal digits",
		"~":                                    "digests: want one value",
		"":                                     "digests: want one value",
		"{}":                                   "digests: want one value",
		"[]":                                   "digests: is empty: omit it",
		"[[" + digestA + "]]":                  "digests: want one value",
		"[" + digestA + ", ~]":                 "digests: want one value",
		"\n- " + digestA + "\n- x":             "g.yaml:5:3: digests: \"x\"",
	} {
		if f, err := Parse("g.yaml", []byte(bound(digest, "pods"))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v, %v\nwant ...%s...", digest, f, err, want)
		}
	}
}

// TestFor_AgreesWithAModel: for random documents and modules, a module gets the documents that
// exclude neither its digest nor its signers. If none names it, the others' modules are reported.
func TestFor_AgreesWithAModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	some := func(from string) (list []string) {
		for _, c := range from {
			if r.IntN(3) == 0 {
				list = append(list, string(c))
			}
		}
		return list
	}
	for range 5000 {
		var f File
		for range r.IntN(4) {
			f = append(f, Document{Digests: some("ab"), Signers: some("xyz")})
		}
		digest, signers := string("abc"[r.IntN(3)]), some("xyz")
		var want File
		var others Bound
		named := false
		for _, d := range f {
			byDigest := len(d.Digests) == 0 || strings.Contains(strings.Join(d.Digests, ""), digest)
			bySigner := len(d.Signers) == 0 || strings.ContainsAny(strings.Join(d.Signers, ""), strings.Join(signers, ""))
			if byDigest && bySigner {
				want = append(want, d)
				named = named || d.Digests != nil || d.Signers != nil
			} else if byDigest {
				others.Signers = append(others.Signers, d.Signers...)
			} else {
				others.Digests = append(others.Digests, d.Digests...)
			}
		}
		if named {
			others = Bound{}
		}
		got, gotOthers := f.For(digest, signers)
		if diff := cmp.Diff([]any{want, others}, []any{got, gotOthers}); diff != "" {
			t.Fatalf("%v for %s, %v (-want +got):\n%s", f, digest, signers, diff)
		}
	}
}

// TestParse_Signers: they are read, written and checked as digests are.
func TestParse_Signers(t *testing.T) {
	f, err := Parse("g.yaml", []byte(strings.Replace(bound("["+digestA+", "+digestB+"]", "pods"), "digests", "signers", 1)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := f[0].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("g.yaml", text)
	if diff := cmp.Diff(f, again); err != nil || diff != "" || !slices.Equal(f[0].Signers, []string{digestA, digestB}) || f[0].Digests != nil {
		t.Errorf("%v, %v, %s", f, err, diff)
	}
	for _, signers := range []string{"[]", "~", "x", digestA[:70], "-----BEGIN"} {
		_, err := Parse("g.yaml", []byte(strings.Replace(bound(signers, "pods"), "digests", "signers", 1)))
		if err == nil || !strings.Contains(err.Error(), "g.yaml:3:10: signers: ") {
			t.Errorf("%s: %v", signers, err)
		}
	}
}

// TestParse_ManifestGrantsAllThatIsRequested: such a document is bound as others are, and has no rights of its own.
func TestParse_ManifestGrantsAllThatIsRequested(t *testing.T) {
	const head = "apiVersion: wasmctl.dev/v1\nkind: Grant\n"
	f, err := Parse("g.yaml", []byte(head+"controller: web\nmanifest: true\ndigests: "+digestA+"\n---\n"+head+"manifest: false\ncapabilities: []\n"))
	if err != nil || !f.Manifest("web") || f.Manifest("other") {
		t.Fatal(f, err)
	}
	if of, _ := f.For(digestB, nil); of.Manifest("web") {
		t.Error("another module has it too")
	}
	text, err := f[0].Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("g.yaml", text)
	if diff := cmp.Diff(f[:1], again); err != nil || diff != "" {
		t.Errorf("%s: %v, %s", text, err, diff)
	}
	for bad, want := range map[string]string{
		"manifest: true\ncapabilities: []\n":   "g.yaml:3:11: manifest: cannot be combined",
		"manifest: true\nfinalizers: [a/b]\n":  "g.yaml:3:11: manifest: cannot be combined",
		"manifest: yes\ncapabilities: []\n":    "g.yaml:3:11: manifest: want true or false",
		"manifest: [true]\ncapabilities: []\n": "g.yaml:3:11: manifest: want true or false",
		"manifest: false\n":                    "g.yaml:1:1: capabilities: is missing",
		"Manifest: true\n":                     "Manifest: unknown key; did you mean manifest?",
		"digest: x\ncapabilities: []\n":        "digest: unknown key; did you mean digests?",
	} {
		if _, err := Parse("g.yaml", []byte(head+bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}
