// Package codecache keeps compiled code in a directory. The code is executed, so
// each entry is authenticated with a key that is elsewhere: one that somebody else
// has written, or that is damaged, is an error and never code.
//
// wazero reads and writes files of its own. It gets a private directory, into which
// Take puts bytes that were verified, and from which Put takes them: between the
// check and the use nobody can replace them.
package codecache

import (
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
	// Name is that of the code in the private directory.
	Name string
	// Form is what Put was given beside the code.
	Form []byte
}

// folder is where entries are, below the directory of the user. Its name is that of
// their format.
const folder = "wasmctl-2"

// maxEntry bounds an entry: far more than the code of a module at its limit.
const maxEntry = 2 << 30

// codeFile is the name by which wazero looks for code: <dir>/wazero-<version>/<hash>.
var codeFile = regexp.MustCompile(`^wazero-[0-9A-Za-z._+-]+/[0-9a-f]{64}$`)

func (s Store) path(id ID) string { return filepath.Join(s.Dir, folder, hex.EncodeToString(id[:])) }

// Take puts the code of a module into a private directory for wazero, and returns
// what it is, nil where there is none. An error matches ErrForged where what is
// there is not ours; then the directory has nothing of it.
func (s Store) Take(id ID, private string) (*Entry, error) {
	f, size, err := open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	e, err := s.unseal(id, f, size, private)
	if err != nil {
		return nil, fmt.Errorf("entry[%s]: %w", filepath.Base(s.path(id)), err)
	}
	return e, nil
}

// Put keeps the code that wazero has written into a private directory, unless that
// is what Take has put there, and a form beside it. It removes the entries that were
// written first where there are too many bytes.
func (s Store) Put(id ID, private, taken string, form []byte) error {
	paths, _ := filepath.Glob(filepath.Join(private, "wazero-*", "*")) // the pattern is fine
	for _, path := range paths {
		name, err := filepath.Rel(private, path)
		if name = filepath.ToSlash(name); err != nil || name == taken || !codeFile.MatchString(name) {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // a link would lead out of the directory
		}
		code, err := os.Open(path) //nolint:gosec // of a private directory
		if err != nil {
			return err
		}
		err = write(s.path(id), func(out io.Writer) error { return s.seal(id, out, name, form, code) })
		if err = errors.Join(err, code.Close()); err == nil {
			trim(s.Dir, maxCache, time.Now())
		}
		return err
	}
	return nil
}

// unseal checks an entry of so many bytes, and puts its code into a directory.
func (s Store) unseal(id ID, f io.Reader, size int64, private string) (*Entry, error) {
	in, err := s.opener(id, f)
	if err != nil {
		return nil, err
	}
	e, err := readHead(in, size)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(private, filepath.FromSlash(e.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := copyTo(path, in); err != nil {
		return nil, errors.Join(err, os.RemoveAll(filepath.Dir(path)))
	}
	return e, nil
}

// seal writes an entry: the length of the name, the name, the length of the form, the
// form, and the code.
func (s Store) seal(id ID, f io.Writer, name string, form []byte, code io.Reader) error {
	out, err := s.sealer(id, f)
	if err != nil {
		return err
	}
	head := append([]byte{byte(len(name))}, name...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(form))) //nolint:gosec // a module is smaller
	if _, err := out.Write(append(head, form...)); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, code, make([]byte, block)); err != nil {
		return err
	}
	return out.Close()
}

// readHead reads what is before the code.
func readHead(in io.Reader, size int64) (*Entry, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:1]); err != nil {
		return nil, forged(err)
	}
	name := make([]byte, length[0])
	if _, err := io.ReadFull(in, name); err != nil || !codeFile.Match(name) {
		return nil, fmt.Errorf("%w: name %q", ErrForged, name)
	}
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, forged(err)
	}
	n := int64(binary.LittleEndian.Uint32(length[:]))
	if n > size {
		return nil, fmt.Errorf("%w: form of %d bytes", ErrForged, n)
	}
	form := make([]byte, n)
	if _, err := io.ReadFull(in, form); err != nil {
		return nil, forged(err)
	}
	return &Entry{Name: string(name), Form: form}, nil
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
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, in, make([]byte, block))
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
