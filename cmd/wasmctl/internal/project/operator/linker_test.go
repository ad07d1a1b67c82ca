// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnBuild_NamesWhatThisBuildDoesNotSet(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"Makefile":             "LD = -s \\\n  -X $(PKG)/version.Version=$(V) -X 'main.image=x'\nbuild:\n\tgo build -tags=pro,eu -ldflags \"$(LD)\"\n",
		"Dockerfile":           "RUN go build -ldflags=\"-X=main.image=$I\" .\n",
		"build/op.Dockerfile":  "RUN go build -tags netgo .\n",
		"hack/build.sh":        "go build -ldflags \"-X main.hack=1\"\n",
		"testdata/Makefile":    "-X main.test=1\n",
		"docs.md":              "-X main.doc=1\n",
		".github/x/Dockerfile": "-X main.ci=1\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := &Project{Root: root}
	var got []string
	for _, f := range p.ownBuild() {
		got = append(got, f.File+": "+f.What)
	}
	want := []string{
		"Dockerfile: the project's build sets main.image by the linker",
		"Makefile: the project's build sets $(PKG)/version.Version by the linker",
		"Makefile: the project's build has the tags pro,eu",
		"build/op.Dockerfile: the project's build has the tags netgo",
		"hack/build.sh: the project's build sets main.hack by the linker",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.Tags, p.LDFlags = "pro", " -X main.image=x"; len(p.ownBuild()) > 0 {
		t.Errorf("a build that sets both: got %v", p.ownBuild())
	}
}
