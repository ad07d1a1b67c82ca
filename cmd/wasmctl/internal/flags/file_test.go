package flags

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
)

// TestControllersFile_TheSchemaIsThatOfTheFlags keeps the schema in the
// repository true.
func TestControllersFile_TheSchemaIsThatOfTheFlags(t *testing.T) {
	const path = "../../../../docs/controllers.schema.json"
	flags, _, _ := Sets()
	want := runfile.Schema(flags)
	if os.Getenv("WASMCTL_UPDATE") != "" {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the flags say: WASMCTL_UPDATE=1 go test -run TheSchemaIs ./cmd/wasmctl/internal/flags (-want +got):\n%s", path, diff)
	}
}
