// SPDX-License-Identifier: Apache-2.0

// Package chaos_test runs wasmctl while something fails: the API server, the network, the process, a module.
package chaos_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
