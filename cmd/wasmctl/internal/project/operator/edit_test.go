package operator

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEdits_FitTheirLibraries: each edit changes its file in the libraries of wasmctl itself,
// which is Go then. What lacks the text stays, and so does what a link points to.
func TestEdits_FitTheirLibraries(t *testing.T) {
	for module, edits := range map[string][]edit{"k8s.io/client-go": inCluster, "k8s.io/apimachinery": noTransport, kubeAPI: volumes} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range edits {
			fits(t, strings.TrimSpace(string(out)), e)
		}
	}
	if err := inCluster[0].apply(t.TempDir()); err != nil {
		t.Error(err)
	}
}

func fits(t *testing.T, library string, e edit) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, filepath.FromSlash(e.file))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(library, filepath.FromSlash(e.file)), file); err != nil {
		t.Fatal(err)
	}
	other := e
	other.old = "func none() {\n"
	for want, e := range []edit{other, e} {
		if err := e.apply(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), e.new) != want {
			t.Errorf("%s: %v, want %d", e.old, err, want)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
			t.Error(err)
		}
	}
}
