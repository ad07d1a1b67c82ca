package program

import (
	"context"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// TestLoad_MainRunsUntilItStartsTheManager: what main gives to Start counts, and
// main need not return; a main that returns before is an error.
func TestLoad_MainRunsUntilItStartsTheManager(t *testing.T) {
	main := func() {
		err := Start(func(name string) (wasmctl.Reconciler, error) {
			return wasmctl.Reconciler{Manifest: wasmctl.Manifest{Name: name}}, nil
		})
		if err == nil {
			<-context.Background().Done() // as the manager waits
		}
	}
	r, err := load(main, "web")
	if err != nil || r.Manifest.Name != "web" {
		t.Errorf("%+v, %v", r.Manifest, err)
	}
	if _, err := load(func() {}, "web"); err == nil {
		t.Error("a main that returns is no error")
	}
}
