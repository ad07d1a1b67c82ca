// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// Dir is a folder with notes and with the bytes of the module that was live last of each
// controller. It implements Notes. Only one process at a time may use it.
type Dir string

// historySuffix ends the names of histories. It does not end in .json, because the note of the controller a.history would be the history of a.
const historySuffix = ".changes"

// Note implements Notes.
func (d Dir) Note(_ context.Context, key string) (string, error) {
	b, err := d.read(key, ".json")
	return string(b), err
}

// SetNote implements Notes.
func (d Dir) SetNote(_ context.Context, key, value string) error {
	return d.write(key, ".json", []byte(value))
}

// Module returns the bytes that SetModule stored, or nil if there are none.
func (d Dir) Module(controller string) ([]byte, error) { return d.read(Key(controller), ".wasm") }

// SetModule stores the bytes of the live module of a controller.
func (d Dir) SetModule(controller string, wasm []byte) error {
	return d.write(Key(controller), ".wasm", wasm)
}

// History returns the bytes that SetHistory stored, or nil if there are none.
func (d Dir) History(controller string) ([]byte, error) {
	return d.read(Key(controller), historySuffix)
}

// SetHistory stores the history of a controller's module.
func (d Dir) SetHistory(controller string, history []byte) error {
	return d.write(Key(controller), historySuffix, history)
}

func (d Dir) path(key, suffix string) string {
	return filepath.Join(string(d), strings.ReplaceAll(key, "/", "_")+suffix)
}

func (d Dir) read(key, suffix string) ([]byte, error) {
	b, err := os.ReadFile(d.path(key, suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func (d Dir) write(key, suffix string, b []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(d.path(key, suffix), b, 0o600)
}
