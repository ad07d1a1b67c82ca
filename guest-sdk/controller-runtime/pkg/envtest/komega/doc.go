// SPDX-License-Identifier: Apache-2.0

//go:build tests_with_an_API_server_build_without_the_replace_lines

// Package komega cannot be built, like package envtest.
package komega
