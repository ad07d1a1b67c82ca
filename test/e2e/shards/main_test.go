// SPDX-License-Identifier: Apache-2.0

// Package shards_test runs several replicas of wasmctl: shards and leader election.
package shards_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
