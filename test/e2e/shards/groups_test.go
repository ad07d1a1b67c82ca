// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestGroups_ARenamedModuleFormsNoSecondGroup: replicas that have their name from a module refuse a module with another
// name. A process that starts with it stops before it runs anything, as long as the first group runs.
func TestGroups_ARenamedModuleFormsNoSecondGroup(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string][]string{"leader": {"--leader-elect"}, "shards": {"--shards", "4"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, kubeconfig := e2e.NewConfigMaps(t)
			named := func(name string) string {
				wasm, err := load.WithManifest(e2e.ReadFile(t, e2e.Guests+"worse.wasm"), &abi.Manifest{Name: name})
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "m.wasm")
				e2e.Replace(t, path, wasm)
				return path
			}
			run := func(module, socket string) *e2e.Process {
				args := append([]string{module, "--for", "cm", "-n", ns, "--leader-elect-resource-namespace", ns, "--socket", socket, "--kubeconfig", kubeconfig}, mode...)
				return e2e.Run(t, append(args, e2e.ShortLeases...)...)
			}
			socket, other := e2e.NewSocket(t), named("other")
			first := run(named("first"), socket)
			first.WantLine(`"msg":"reconciled"`)
			if _, out := e2e.Refused(t, "swap", socket, "first", other); !e2e.ContainsAll(out, []string{"other", "--name first"}) {
				t.Errorf("swap: %s", out)
			}
			second := run(other, "none")
			second.WantExit(e2e.ExitLost)
			if text := second.Text(); !e2e.ContainsAll(text, []string{"--leader-elect-resource-name wasmctl-first"}) || second.Count(`"msg":"reconciled"`) > 0 {
				t.Errorf("the second group: %s", text)
			}
			first.Signal(syscall.SIGTERM)
			first.WantExit(e2e.ExitOK)
			run(other, "none").WantLine(`"msg":"reconciled"`)
		})
	}
}
