// SPDX-License-Identifier: Apache-2.0

// Package build_test builds projects and operators like a user, and runs the modules.
package build_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
