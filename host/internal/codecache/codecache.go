// SPDX-License-Identifier: Apache-2.0

// Package codecache keeps compiled code in a directory. The code is executed, so
// each entry is authenticated with a key that is elsewhere: one that somebody else
// has written, or that is damaged, is an error and never code.
//
// wazero reads and writes files of its own. It gets a private directory, into which
// Take puts bytes that were verified, and from which Put takes them: between the
// check and the use nobody can replace them. An entry may have the machine code apart
// from the file, which Take then gives to its caller, verified too.
package codecache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// Entry is what Take has found.
type Entry struct {
	// Form is what Put was given beside the code.
	Form []byte

	name string // of wazero's file in the private directory
	head []byte // of that; nil where all of it follows
	code int64  // bytes of code that follow, apart from that
}

// Split parts a file of so many bytes that wazero has written into code and a head, from
// which wazero loads all else; code is nil where the file stays whole.
type Split func(file io.ReaderAt, size int64) (head []byte, code *io.SectionReader)

// Place takes machine code, all of in, which has so many bytes. What it has read is
// verified; but there is more to verify, and no code where Take has an error.
type Place func(size int64, in io.Reader) error

// folder is where entries are, below the directory of the user. Its name is that of
// their format.
const folder = "wasmctl-3"

// maxEntry bounds an entry: far more than the code of a module at its limit.
const maxEntry = 2 << 30

// codeFile is the name by which an engine looks for code, such as wazero-<version>/<hash>:
// a file in a folder, neither of which leads out of the directory.
var codeFile = regexp.MustCompile(`^[a-z]+-[0-9A-Za-z._+-]+/[0-9a-f]{64}$`)

func (s Store) path(id ID) string { return filepath.Join(s.Dir, folder, hex.EncodeToString(id[:])) }

// Take puts the code of a module into a private directory for wazero and, where the
// entry has that apart, into place. It returns what it is, nil where there is none. An
// error matches ErrForged where what is there is not ours; then the directory has nothing
// of it.
func (s Store) Take(id ID, private string, place Place) (*Entry, error) {
	f, size, err := open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	e, err := s.unseal(id, f, size, private, place)
	if err != nil {
		return nil, fmt.Errorf("entry[%s]: %w", filepath.Base(s.path(id)), err)
	}
	return e, nil
}

// Put stores the code that wazero has written into a private directory, divided by split
// unless that is nil, and a form, which is given in parts. If the store has too many bytes
// afterwards, Put removes the entries that were written first.
func (s Store) Put(id ID, private string, split Split, form ...[]byte) error {
	paths, _ := filepath.Glob(filepath.Join(private, "*-*", "*")) // the pattern is fine
	for _, path := range paths {
		name, err := filepath.Rel(private, path)
		if name = filepath.ToSlash(name); err != nil || !codeFile.MatchString(name) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // a link would lead out of the directory
		}
		file, err := os.Open(path) //nolint:gosec // of a private directory
		if err != nil {
			return err
		}
		e, rest := Entry{name: name}, io.Reader(file)
		if split != nil {
			if head, code := split(file, info.Size()); code != nil {
				e.head, e.code, rest = head, code.Size(), code
			}
		}
		err = write(s.path(id), func(out io.Writer) error { return s.seal(id, out, &e, form, rest) })
		if err = errors.Join(err, file.Close()); err == nil {
			trim(s.Dir, maxCache, time.Now())
		}
		return err
	}
	return nil
}

// unseal checks an entry of so many bytes, and puts its code where it belongs.
func (s Store) unseal(id ID, f io.Reader, size int64, private string, place Place) (*Entry, error) {
	in, err := s.opener(id, f)
	if err != nil {
		return nil, err
	}
	e, err := readHead(in, size)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(private, filepath.FromSlash(e.name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if e.code == 0 {
		err = copyTo(path, in)
	} else if err = copyTo(path, bytes.NewReader(e.head)); err == nil {
		if err = place(e.code, in); err == nil {
			err = ended(in)
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(filepath.Dir(path)))
	}
	return e, nil
}

// seal writes an entry: the lengths of the name, the form, the head and the code, then these
// parts, and the code or the whole file.
func (s Store) seal(id ID, f io.Writer, e *Entry, form [][]byte, rest io.Reader) error {
	out, err := s.sealer(id, f)
	if err != nil {
		return err
	}
	var lengths []byte
	size := 0
	for _, part := range form {
		size += len(part)
	}
	for _, n := range []int{len(e.name), size, len(e.head), int(e.code)} {
		lengths = binary.LittleEndian.AppendUint64(lengths, uint64(n)) //nolint:gosec // not negative
	}
	for _, part := range slices.Concat([][]byte{lengths, []byte(e.name)}, form, [][]byte{e.head}) {
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, rest, make([]byte, block)); err != nil {
		return err
	}
	return out.Close()
}

// readHead reads what is before the code, of an entry of so many bytes.
func readHead(in io.Reader, size int64) (*Entry, error) {
	var lengths [4 * 8]byte
	if _, err := io.ReadFull(in, lengths[:]); err != nil {
		return nil, forged(err)
	}
	var n [4]int64
	for i := range n {
		n[i] = int64(binary.LittleEndian.Uint64(lengths[8*i:])) //nolint:gosec // checked
		if n[i] < 0 || n[i] > size {
			return nil, fmt.Errorf("%w: part of %d bytes", ErrForged, n[i])
		}
	}
	parts := make([]byte, n[0]+n[1]+n[2])
	if _, err := io.ReadFull(in, parts); err != nil {
		return nil, forged(err)
	}
	e := &Entry{name: string(parts[:n[0]]), Form: parts[n[0] : n[0]+n[1]], head: parts[n[0]+n[1]:], code: n[3]}
	if !codeFile.MatchString(e.name) {
		return nil, fmt.Errorf("%w: name %q", ErrForged, e.name)
	}
	return e, nil
}

// ended says whether all of an entry was read, and so verified.
func ended(in io.Reader) error {
	var b [1]byte
	if _, err := io.ReadFull(in, b[:]); !errors.Is(err, io.EOF) {
		return errors.Join(ErrForged, err)
	}
	return nil
}

// forged is the error of an entry that ends too soon.
func forged(err error) error {
	if errors.Is(err, ErrForged) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrForged, err)
}

func copyTo(path string, in io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a private directory, and checked
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{f}, in)
	return errors.Join(err, f.Close())
}

// open opens a regular file; others may have put anything in its place.
func open(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // a hash
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxEntry) {
		err = fmt.Errorf("entry[%s]: %w: %v of %d bytes", filepath.Base(path), ErrForged, info.Mode().Type(), info.Size())
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// write replaces a file by a whole one.
func write(path string, content func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	if err = errors.Join(content(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
