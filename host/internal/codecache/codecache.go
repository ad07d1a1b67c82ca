// Package codecache keeps compiled code in a directory. The code is executed, so
// each entry is authenticated with a key that is elsewhere: one that somebody else
// has written, or that is damaged, is an error and never code.
//
// wazero reads and writes files of its own. It gets a private directory, into which
// Take puts bytes that were verified, and from which Put takes them: between the
// check and the use nobody can replace them.
package codecache

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// ErrForged is wrapped by the error of an entry that was not written with the key,
// or was changed since.
var ErrForged = errors.New("not authentic")

// ID names the code of a module in a form.
type ID [sha256.Size]byte

// Store is a cache directory.
type Store struct {
	Dir string
	// Key authenticates entries. Without one they are only known to be undamaged.
	Key []byte
}

// folder is where entries are, below the directory of the user.
const folder = "wasmctl-1"

// maxEntry bounds an entry: far more than the code of a module at its limit.
const maxEntry = 2 << 30

// codeFile is the name by which wazero looks for code: <dir>/wazero-<version>/<hash>.
var codeFile = regexp.MustCompile(`^wazero-[0-9A-Za-z._+-]+/[0-9a-f]{64}$`)

func (s Store) path(id ID) string { return filepath.Join(s.Dir, folder, hex.EncodeToString(id[:])) }

// Take puts the code of a module into a private directory for wazero, and returns its
// name there, "" where there is none. An error matches ErrForged where what is there
// is not ours.
func (s Store) Take(id ID, private string) (name string, err error) {
	entry, err := read(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var code []byte
	name, code, err = s.open(id, entry)
	if err != nil {
		return "", fmt.Errorf("entry[%s]: %w", filepath.Base(s.path(id)), err)
	}
	path := filepath.Join(private, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return name, os.WriteFile(path, code, 0o600)
}

// Put keeps the code that wazero has written into a private directory, unless that
// is what Take has put there, and removes the entries that were written first where
// there are too many bytes.
func (s Store) Put(id ID, private, taken string) error {
	paths, _ := filepath.Glob(filepath.Join(private, "wazero-*", "*")) // the pattern is fine
	for _, path := range paths {
		name, err := filepath.Rel(private, path)
		if name = filepath.ToSlash(name); err != nil || name == taken || !codeFile.MatchString(name) {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // a link would lead out of the directory
		}
		code, err := os.ReadFile(path) //nolint:gosec // of a private directory
		if err != nil {
			return err
		}
		if err := write(s.path(id), s.seal(id, name, code)); err != nil {
			return err
		}
		trim(s.Dir, maxCache, time.Now())
		return nil
	}
	return nil
}

// seal returns an entry: its MAC, the length of the name, the name and the code.
func (s Store) seal(id ID, name string, code []byte) []byte {
	entry := make([]byte, sha256.Size, sha256.Size+1+len(name)+len(code))
	entry = append(append(append(entry, byte(len(name))), name...), code...)
	copy(entry, s.mac(id, entry[sha256.Size:]))
	return entry
}

// open checks an entry, and returns what is in it.
func (s Store) open(id ID, entry []byte) (name string, code []byte, err error) {
	if len(entry) <= sha256.Size || !hmac.Equal(entry[:sha256.Size], s.mac(id, entry[sha256.Size:])) {
		return "", nil, ErrForged
	}
	body := entry[sha256.Size:]
	if n := int(body[0]); 1+n <= len(body) {
		name, code = string(body[1:1+n]), body[1+n:]
	}
	if !codeFile.MatchString(name) {
		return "", nil, fmt.Errorf("%w: name %q", ErrForged, name)
	}
	return name, code, nil
}

func (s Store) mac(id ID, body []byte) []byte {
	h := hmac.New(sha256.New, s.Key)
	h.Write([]byte(folder)) // the format
	h.Write(id[:])
	h.Write(body)
	return h.Sum(nil)
}

// read reads a regular file; others may have put anything in its place.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // a hash
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxEntry {
		return nil, fmt.Errorf("entry[%s]: %w: %v of %d bytes", filepath.Base(path), ErrForged, info.Mode().Type(), info.Size())
	}
	b := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(f, maxEntry))
	return b.Bytes(), err
}

// write replaces a file by a whole one.
func write(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
