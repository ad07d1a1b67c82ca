// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/internal/linear"
)

// TestMain runs the tests with memory that ends the process where somebody reads
// it after its instance was closed. Where startRemote has asked for it, the
// process is an API server instead.
func TestMain(m *testing.M) {
	if os.Getenv(serverVar) != "" {
		fmt.Fprintln(os.Stderr, serve())
		os.Exit(1)
	}
	linear.KeepFreed.Store(true)
	devclustertest.Main(m)
}
