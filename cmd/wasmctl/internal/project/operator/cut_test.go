// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCut_MethodsWithWhatTheyUse(t *testing.T) {
	const src = `// Code generated.
package v1

import (
	fmt "fmt"
	io "io"
	"sort"
	strings "strings"
)

var _ = io.EOF

func (m *A) Marshal() error { return io.EOF }
func (m *A) Size() int { return sov(1) }
func (m *A) String() string { sort.Strings(nil); return fmt.Sprint(text(m)) }
func (m *B) Size() int { return soz(1) }
func soz(n int) int { return n }
func text(v any) string { return strings.ToLower("A") }
func sov(n int) int { return n }
func skip() error { return io.EOF }
func init() { skip() }
`
	isA := func(name string) bool { return name == "A" }
	got, err := cut("a.pb.go", []byte(src), []string{"Size", "String"}, isA)
	const want = `package v1

import fmt "fmt"
import sort "sort"
import strings "strings"

func (m *A) Size() int { return sov(1) }

func (m *A) String() string { sort.Strings(nil); return fmt.Sprint(text(m)) }

func sov(n int) int { return n }

func text(v any) string { return strings.ToLower("A") }
`
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if got, err := cut("a.pb.go", []byte(src), []string{"Reset"}, isA); got != nil || err != nil {
		t.Errorf("without the methods: %q, %v", got, err)
	}
	typed := src + "type A struct{}\n"
	if got, err := cut("a.pb.go", []byte(typed), []string{"Size"}, isA); string(got) != typed || err != nil {
		t.Errorf("with a type: %q, %v", got, err)
	}
}

// TestCut_TextsOfKubernetesTypesAreTheSame prints a random object of each type of k8s.io/api, natively, with
// the library as it is and with what the overlays keep of it.
func TestCut_TextsOfKubernetesTypesAreTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles k8s.io/api twice")
	}
	api, err := build.Import("k8s.io/api/core/v1", ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	table, err := readOverlays("../../../../../guest-sdk/controller-runtime")
	if err != nil {
		t.Fatal(err)
	}
	table = slices.DeleteFunc(table, func(o overlay) bool { return o.Unless != protobuf })
	dir := t.TempDir()
	all := func(typeName) bool { return true }
	if err := copyWithout(library{path: kubeAPI, dir: filepath.Dir(filepath.Dir(api.Dir))}, filepath.Join(dir, "api"), table, all); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("../../../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if file == "go.mod" {
			text = append(text, "\nreplace k8s.io/api => "+dir+"/api\n"...)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(flags ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"run"}, flags...), "./testdata/texts")...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	got, want := run("-modfile="+filepath.Join(dir, "go.mod")), run()
	if got != want || strings.Count(want, "\n") < 500 {
		t.Errorf("%d bytes, want %d; the texts differ", len(got), len(want))
	}
}
