package host

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/linear"
)

// TestMain runs the tests with the bound of CPU time that the variable
// WASMCTL_TEST_CPU names, which is one of CPUs. Who reads the memory of an
// instance that was closed ends the process. With WASMCTL_TEST_ISOLATE their
// guests are behind a connection, as in a process of their own.
func TestMain(m *testing.M) {
	if cpu := CPU(os.Getenv("WASMCTL_TEST_CPU")); cpu != "" {
		if !slices.Contains(CPUs, cpu) {
			fmt.Fprintf(os.Stderr, "WASMCTL_TEST_CPU %q: want one of %v\n", cpu, CPUs)
			os.Exit(2)
		}
		defaultCPU = cpu
	}
	if os.Getenv("WASMCTL_TEST_ISOLATE") != "" {
		defaultIsolation = &localIsolation{}
	}
	linear.KeepFreed.Store(true)
	os.Exit(m.Run())
}
