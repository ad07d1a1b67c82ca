// SPDX-License-Identifier: Apache-2.0

package logrus

// isTerminal reports whether a file is a terminal: a module has none.
func isTerminal(int) bool { return false } //nolint:unused // the library calls it
