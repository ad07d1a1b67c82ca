// SPDX-License-Identifier: Apache-2.0

//go:build tinygo

// Package garbage does nothing here, because a collection of TinyGo runs
// without interruption.
package garbage

// AfterCall is called at the end of each call.
func AfterCall(func() bool) {}
