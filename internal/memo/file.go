// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
)

// magic is the beginning of a file. The entries follow, and finally an HMAC of everything before it.
const magic = "wasmctl memo 1\n"

// maxFile is the maximum size of a file to read: no Memo writes a larger one.
const maxFile = maxBytes

var errFile = errors.New("it is of another version of wasmctl, damaged, or not written with the key of this user")

// File returns the path of the file for the Memo of a controller, in a directory.
func File(dir, controller string) string {
	return filepath.Join(dir, strings.ReplaceAll(controller, "/", "_")+".memo")
}

// Run saves the remembered runs periodically and at the end.
func (m *Memo) Run(ctx context.Context) {
	if m.cfg.Path == "" {
		return
	}
	tick := time.NewTicker(saveTime)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
		if err := m.save(); err != nil {
			m.cfg.Logger.Warn("cannot save the remembered runs", "file", m.cfg.Path, "error", err.Error())
		}
	}
}

// save replaces the file if something has changed.
func (m *Memo) save() error {
	entries, changed := m.snapshot()
	if !changed {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(m.cfg.Path), 0o700)
	if err == nil {
		err = atomicfile.Replace(m.cfg.Path, seal(m.cfg.Key, entries), 0o600)
	}
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed = true
		return err
	}
	return nil
}

// read loads the entries of the file. A file that cannot be used is ignored.
func (m *Memo) read() {
	if m.cfg.Path == "" {
		return
	}
	entries, err := readFile(m.cfg.Path, m.cfg.Key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.cfg.Logger.Warn("the file of remembered runs is ignored: all objects will be reconciled", "file", m.cfg.Path, "error", err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, e := range entries {
		if m.bytes+e.size(key) <= maxBytes {
			m.put(key, e)
		}
	}
	m.changed = false
}

func readFile(path string, key []byte) (map[abi.Key]entry, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%w: mode %v, %d bytes", errFile, info.Mode(), info.Size())
	}
	b, err := os.ReadFile(path) // in the user's directory
	if err != nil {
		return nil, err
	}
	return open(key, b)
}

// seal encodes the content of a file.
func seal(key []byte, entries map[abi.Key]entry) []byte {
	b := []byte(magic)
	for k, e := range entries {
		b = appendText(appendText(b, k.Namespace), k.Name)
		b = binary.BigEndian.AppendUint64(b, e.version)
		b = append(b, e.input[:]...)
		b = binary.AppendVarint(binary.AppendVarint(b, e.due), int64(e.after))
		b = appendText(b, e.reads)
	}
	return append(b, macOf(key, b)...)
}

// open verifies and decodes the content of a file.
func open(key, b []byte) (map[abi.Key]entry, error) {
	body := len(b) - sha256.Size
	if body < len(magic) || !bytes.HasPrefix(b, []byte(magic)) || !hmac.Equal(b[body:], macOf(key, b[:body])) {
		return nil, errFile
	}
	f := decoder{rest: b[len(magic):body]}
	entries := map[abi.Key]entry{}
	for len(f.rest) > 0 && !f.bad {
		var e entry
		k := abi.Key{Namespace: f.text(), Name: f.text()}
		e.version = binary.BigEndian.Uint64(f.take(8))
		e.input = digest(f.take(len(e.input)))
		e.due, e.after = f.number(), time.Duration(f.number())
		e.reads = f.text()
		entries[k] = e
	}
	if f.bad {
		return nil, errFile
	}
	return entries, nil
}

func macOf(key, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads the encoding of seal. After an error, all values are zero.
type decoder struct {
	rest []byte
	bad  bool
}

// take returns the next n bytes, or zeros if there are fewer.
func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.rest, d.bad = nil, true
		return make([]byte, min(n, sha256.Size))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) text() string {
	size, n := binary.Uvarint(d.rest)
	if n <= 0 || size > uint64(len(d.rest)-n) {
		d.rest, d.bad = nil, true
		return ""
	}
	d.rest = d.rest[n:]
	return string(d.take(int(size))) // not longer than the rest
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.rest, d.bad = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}
