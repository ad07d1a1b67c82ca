// SPDX-License-Identifier: Apache-2.0

package term

import (
	"errors"
	"io"
	"os"
)

// ErrInvalidState is never returned.
var ErrInvalidState = errors.New("invalid state of a terminal")

var errNone = errors.New("a module has no terminal")

// State is the state of a terminal.
type State struct{}

// Winsize is the size of a terminal.
type Winsize struct{ Height, Width uint16 }

// StdStreams returns the standard streams.
func StdStreams() (in io.ReadCloser, out, err io.Writer) {
	return os.Stdin, os.Stdout, os.Stderr
}

// GetFdInfo returns the descriptor of a file, which is not a terminal.
func GetFdInfo(of any) (fd uintptr, isTerminal bool) {
	if f, ok := of.(*os.File); ok {
		fd = f.Fd()
	}
	return fd, false
}

// IsTerminal returns false, because a module has no terminal.
func IsTerminal(uintptr) bool { return false }

// GetWinsize returns an error: there is no terminal.
func GetWinsize(uintptr) (*Winsize, error) { return nil, errNone }

// SetWinsize returns an error: there is no terminal.
func SetWinsize(uintptr, *Winsize) error { return errNone }

// RestoreTerminal returns an error: there is no terminal.
func RestoreTerminal(uintptr, *State) error { return errNone }

// SaveState returns an error: there is no terminal.
func SaveState(uintptr) (*State, error) { return nil, errNone }

// DisableEcho returns an error: there is no terminal.
func DisableEcho(uintptr, *State) error { return errNone }

// MakeRaw returns an error: there is no terminal.
func MakeRaw(uintptr) (*State, error) { return nil, errNone }

// SetRawTerminal returns an error: there is no terminal.
func SetRawTerminal(uintptr) (*State, error) { return nil, errNone }

// SetRawTerminalOutput returns an error: there is no terminal.
func SetRawTerminalOutput(uintptr) (*State, error) { return nil, errNone }
