// Package enginetest has what the tests of controllers have in common: guests
// that behave well or badly, and an API server in memory that can be watched.
package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settleLimit bounds each wait of Until. A run that failed is retried with
// back-off, and the machine may be busy.
const settleLimit = 4 * time.Minute

// Until waits until ok returns true.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(settleLimit); !ok(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("after %v, still not: %s", settleLimit, what)
		}
	}
}

// CacheDir returns where all tests keep compiled modules: to compile one takes
// seconds on a busy machine.
func CacheDir() string { return filepath.Join(os.TempDir(), "wasmctl-guests", "compiled") }

// ObjectName returns the name of an object by its number.
func ObjectName(i int) string { return fmt.Sprintf("o%d", i) }

// ContainsAll reports whether a text contains all parts.
func ContainsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
