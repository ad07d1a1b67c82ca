// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package layout

import "io"

// mapped reports that Map does not work on this system: Split leaves everything to wazero.
const mapped = false

// Map always fails.
func Map(int64, io.Reader, ...string) ([]byte, bool, error) { return nil, false, ErrUnsuited }

// Unmap does nothing, because nothing was mapped.
func Unmap([]byte) error { return nil }

// Suits reports that no directory does.
func Suits(string, int) error { return ErrUnsuited }

// Rest does nothing, because no code lies in a file.
func Rest([]byte) error { return nil }
