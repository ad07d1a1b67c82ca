// SPDX-License-Identifier: Apache-2.0

// Package run_test runs wasmctl run and the commands that look at and steer its process.
package run_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
