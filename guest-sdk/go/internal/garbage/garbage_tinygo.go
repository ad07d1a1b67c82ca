//go:build tinygo

// Package garbage does nothing here: TinyGo collects in one go.
package garbage

// AfterCall is called at the end of each call.
func AfterCall(func() bool) {}
