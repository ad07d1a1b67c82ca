package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toolchain builds one guest of the folder guests.
type toolchain struct {
	name string
	dir  string
	// tool must be on PATH, else the guest is skipped, loudly.
	tool []string
	// build writes the module to out.
	build func(t *testing.T, dir, out string)
	// lacks are the cases that the guest may lack, sorted; see Lacks.
	lacks []string
}

var toolchains = []toolchain{
	{name: "go", dir: "go", tool: []string{"go"}, build: func(t *testing.T, dir, out string) {
		run(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS="}, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	}},
	{name: "tinygo", dir: "go", tool: []string{"tinygo"}, build: func(t *testing.T, dir, out string) {
		run(t, dir, nil, "tinygo", "build", "-target=wasip1", "-buildmode=c-shared", "-gc=precise", "-scheduler=none", "-no-debug", "-opt=2",
			"-ldflags=-extldflags '-z stack-size=524288'", "-o", out, ".")
	}},
}

// run runs a command in a folder.
func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, msg)
	}
}

// TestGuests_AllDoTheSame is what keeps SDKs from drifting apart: every guest,
// in every language, does every case, and lacks none but those that it may.
func TestGuests_AllDoTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest for each toolchain")
	}
	for _, tc := range toolchains {
		t.Run(tc.name, func(t *testing.T) {
			for _, tool := range tc.tool {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("SKIPPED: %s is not on PATH: the guest %s is not tested; see host/conformance/README.md", tool, tc.name)
				}
			}
			if _, err := os.Stat(filepath.Join("guests", tc.dir)); err != nil {
				t.Skipf("SKIPPED: %v", err)
			}
			out := filepath.Join(t.TempDir(), "guest.wasm")
			tc.build(t, filepath.Join("guests", tc.dir), out)
			testGuest(t, out, tc.lacks)
		})
	}
}

func testGuest(t *testing.T, file string, mayLack []string) {
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Open(t.Context(), wasm, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	count := map[Result]int{}
	lacks := []string{}
	for _, c := range Cases() {
		out := g.Try(t.Context(), c)
		count[out.Result]++
		switch out.Result {
		case Fail:
			t.Errorf("%s (ABI.md, %d: %s)", out, c.Section, c.About)
		case Lacks:
			lacks = append(lacks, c.ID)
		case Pass:
		}
	}
	t.Logf("%d KiB: %d cases pass, %d fail, %d are lacking", len(wasm)>>10, count[Pass], count[Fail], count[Lacks])
	slices.Sort(lacks)
	if diff := cmp.Diff(append([]string{}, mayLack...), lacks); diff != "" {
		t.Errorf("cases that the SDK has no function for (-may +does):\n%s", diff)
	}
}
