// SPDX-License-Identifier: Apache-2.0

// Package webhooks_test lets a real API server call the webhooks of modules.
package webhooks_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
