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

// TestEdits_FitClientGo: each edit changes its function in the client-go of wasmctl itself,
// whose file is Go then. What lacks the function stays, and so does what a link points to.
func TestEdits_FitClientGo(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range inCluster {
		dir := t.TempDir()
		file := filepath.Join(dir, filepath.FromSlash(e.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(e.file)), file); err != nil {
			t.Fatal(err)
		}
		other := e
		other.function = "func none() {"
		for want, e := range []edit{other, e} {
			if err := e.apply(dir); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil || strings.Count(string(text), e.body) != want {
				t.Errorf("%s: %v, want %d", e.function, err, want)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
				t.Error(err)
			}
		}
	}
	if err := inCluster[0].apply(t.TempDir()); err != nil {
		t.Error(err)
	}
}
