// SPDX-License-Identifier: Apache-2.0

// Package examples contains the common test of the examples. Each example is a module in its own
// folder, with a README.md.
package examples
