// SPDX-License-Identifier: Apache-2.0

// Package tenants_test runs wasmctl serve for two tenants: one attacks, and the other one observes
// how long its runs and the changes of its Reconcilers take.
package tenants_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
