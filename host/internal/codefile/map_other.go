//go:build !linux

package codefile

import "io"

// mapped says that Map does not work here: Split leaves all to wazero.
const mapped = false

// Map maps nothing.
func Map(int64, io.Reader, ...string) ([]byte, bool, error) { return nil, false, ErrUnsuited }

// Unmap does nothing: nothing was mapped.
func Unmap([]byte) error { return nil }

// Suits says that no directory does.
func Suits(string, int) error { return ErrUnsuited }

// Rest does nothing: no code is in a file.
func Rest([]byte) error { return nil }
