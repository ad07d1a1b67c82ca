// SPDX-License-Identifier: Apache-2.0

// Package term replaces the files of github.com/moby/term, which does not
// compile for wasip1. Programs use it to get the width of the terminal for
// --help.
package term
