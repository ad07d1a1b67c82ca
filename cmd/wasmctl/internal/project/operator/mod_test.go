// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"path/filepath"
	"strings"
	"testing"
)

// replaced returns the replace lines of a project as it is built.
func replaced(t *testing.T, lines string) (map[string]string, error) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module example.com/op\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\n\n"+lines)
	write(t, filepath.Join(root, "there", "go.mod"), "module example.com/there\n")
	write(t, filepath.Join(root, "there", "sub", "go.mod"), "module example.com/there/sub\n")
	s := &Stage{dir: t.TempDir(), stderr: t.Output(), pinned: map[string]string{}, required: map[string]string{}}
	if _, err := s.writeMod(t.Context(), &Project{Root: root}, SDK{Checkout: "../../../../.."}); err != nil {
		return nil, err
	}
	mod, err := s.readMod(t.Context(), filepath.Join(s.dir, "go.mod"))
	to := map[string]string{}
	for _, r := range mod.Replace {
		to[r.Old.String()] = r.New.String()
	}
	return to, err
}

// TestStage_ReplaceLinesOfTheProject: folders are those of the project, what stands for
// controller-runtime wins over its versions, and a folder that is not there is taken
// from the registry, or is an error if that cannot have it.
func TestStage_ReplaceLinesOfTheProject(t *testing.T) {
	const standIn = "./.wasmctl/sigs.k8s.io/controller-runtime"
	for lines, want := range map[string]string{
		"replace example.com/there => ./there":                                               "example.com/there ./.wasmctl/example.com/there",
		"replace example.com/there v1.0.0 => ./there":                                        "example.com/there ./.wasmctl/example.com/there",
		"replace example.com/there => ./there\nreplace example.com/there/sub => ./there/sub": "example.com/there/sub ./.wasmctl/example.com_there_sub",
		"replace example.com/there/sub => ./there/sub\nreplace example.com/there => ./there": "example.com/there ./.wasmctl/example.com_there",
		"replace example.com/x v1.0.0 => example.com/y v1.1.0":                               "example.com/x example.com/y@v1.1.0",
		"replace sigs.k8s.io/controller-runtime => sigs.k8s.io/controller-runtime v0.19.0":   "sigs.k8s.io/controller-runtime " + standIn,
		"replace sigs.k8s.io/controller-runtime v0.22.0 => example.com/fork v0.22.1":         "sigs.k8s.io/controller-runtime " + standIn,
		"replace k8s.io/kube-openapi => k8s.io/kube-openapi v0.0.1":                          "k8s.io/kube-openapi ./.wasmctl/k8s.io/kube-openapi",
		"require example.com/api v1.2.3\nreplace example.com/api => ./api":                   "example.com/api ",
	} {
		got, err := replaced(t, lines)
		module, to, _ := strings.Cut(want, " ")
		if err != nil || got[module] != to || got["sigs.k8s.io/controller-runtime"] != standIn || got[module+"@v1.0.0"] != "" {
			t.Errorf("%s: %v %v, want %s", lines, got, err, want)
		}
	}
	_, err := replaced(t, "require example.com/api v0.0.0-00010101000000-000000000000\nreplace example.com/api => ./api")
	if err == nil || !strings.Contains(err.Error(), "./api") {
		t.Errorf("a folder that is nowhere: %v", err)
	}
}
