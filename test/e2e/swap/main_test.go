// SPDX-License-Identifier: Apache-2.0

// Package swap_test replaces modules of running processes, from files, registries and commands.
package swap_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
