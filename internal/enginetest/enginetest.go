// SPDX-License-Identifier: Apache-2.0

// Package enginetest has helpers for tests of controllers: guests that behave well or
// badly, and waiting for a condition.
package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settleLimit bounds each wait of Until. A failed run is retried with back-off, and the
// machine may be busy.
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

// CacheDir returns the folder in which all tests cache compiled modules, because compiling
// a module takes seconds on a busy machine.
func CacheDir() string { return filepath.Join(os.TempDir(), "wasmctl-guests", "compiled") }

// ObjectName returns the name of the i-th object.
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
