// SPDX-License-Identifier: Apache-2.0

// Package gocmp has no code. A folder below it has a file that replaces one of go-cmp in
// modules.
package gocmp
