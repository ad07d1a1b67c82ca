// SPDX-License-Identifier: Apache-2.0

//go:build tests_with_an_API_server_build_without_the_replace_lines

// Package envtest starts API servers for tests in the real controller-runtime.
// This package cannot be built: build such tests without the replace lines. It
// exists so that go mod tidy works in projects with such tests.
package envtest
