// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestReader_SaysWhereAndWhat: each error has its position. The formats on top have tests of their
// own.
func TestReader_SaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"no YAML", "a: [", "f.yaml: line 1"},
		{"two documents", "a: 1\n---\na: 2\n", "f.yaml:3:1: too many documents: want at most 1"},
		{"no mapping", "- a\n", "f.yaml:1:1: want a mapping of list, word"},
		{"unknown", "a: 1\n", "f.yaml:1:1: a: unknown key; want one of list, word"},
		{"slip", "wrod: 1\n", "did you mean word?"},
		{"twice", "word: a\nword: b\n", "f.yaml:2:1: word: appears twice"},
		{"merge", "<<: {word: a}\n", "merge keys are not supported"},
		{"value for a list", "list: a\n", "f.yaml:1:7: list: want a list"},
		{"list for a value", "word: [a]\n", "f.yaml:1:7: word: want one value"},
		{"list beyond its bound", "list: [a, b, c, d]\n", "f.yaml:1:7: list: has 4 entries, the limit is 3"},
		{"nothing", "word: ~\n", "word: want one value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read([]byte(c.content))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	_, err := read([]byte(strings.Repeat("x: 1\n", 100_000)))
	if n := strings.Count(err.Error(), "\n") + 1; n != maxErrors {
		t.Errorf("%d errors are reported, want %d", n, maxErrors)
	}
	got, err := read([]byte("---\n---\nlist: [&x a, *x]\nword: *x\n"))
	if err != nil || strings.Join(got, " ") != "a a a" {
		t.Errorf("%q, %v", got, err)
	}
}

// read reads {list: [...], word: ...}.
func read(content []byte) (words []string, err error) {
	r := &Reader{Path: "f.yaml"}
	for _, root := range r.Documents(content, 1) {
		fields := r.Mapping(root, []string{"list", "word"})
		var nodes []*yaml.Node
		if n := fields["list"]; n != nil {
			nodes = r.Sequence(n, "list", 3)
		}
		if n := fields["word"]; n != nil {
			nodes = append(nodes, n)
		}
		for _, n := range nodes {
			if text, ok := r.Scalar(n, "word"); ok {
				words = append(words, text)
			}
		}
	}
	return words, r.Err()
}

// FuzzReader checks that no file causes a panic or an endless loop.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{"list: [a]\nword: b\n", "a: &a [*a]\n", "&a a: *a\n", "---\n---\n", "? [a]\n: b\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, content []byte) { _, _ = read(content) })
}
