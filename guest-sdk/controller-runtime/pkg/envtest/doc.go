//go:build tests_with_an_API_server_build_without_the_replace_lines

// Package envtest starts API servers for tests, with the real controller-runtime. This one
// cannot be built: build such tests without the replace lines. It is here so that go mod tidy
// works in projects that have some.
package envtest
