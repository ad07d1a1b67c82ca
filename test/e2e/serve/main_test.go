// SPDX-License-Identifier: Apache-2.0

// Package serve_test runs wasmctl serve.
package serve_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
