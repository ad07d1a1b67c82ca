// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var (
	key  = bytes.Repeat([]byte{7}, 32)
	name = "wazero-v1-amd64-linux/" + strings.Repeat("ab", 32)
)

// placed is what Take gives to its caller.
type placed struct{ code string }

func (p *placed) place(size int64, in io.Reader) error {
	b := make([]byte, size)
	_, err := io.ReadFull(in, b)
	p.code = string(b)
	return err
}

// halves parts a file in the middle.
func halves(file io.ReaderAt, size int64) ([]byte, *io.SectionReader) {
	head := make([]byte, size/2)
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, nil
	}
	return head, io.NewSectionReader(file, size/2, size-size/2)
}

// put keeps some code.
func put(t *testing.T, s Store, id ID, code string, split Split) {
	t.Helper()
	private := t.TempDir()
	path := filepath.Join(private, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(id, private, split, []byte("fo"), nil, []byte("rm")); err != nil {
		t.Fatal(err)
	}
}

// sealed is an entry.
func sealed(t *testing.T, s Store, name string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "entry")
	if err := write(path, func(out io.Writer) error {
		return s.seal(ID{1}, out, &Entry{name: name}, [][]byte{[]byte("form")}, strings.NewReader("code"))
	}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStore_GivesBackWhatItWasGiven(t *testing.T) {
	s := Store{t.TempDir(), key}
	if got, err := s.Take(ID{1}, t.TempDir(), nil); got != nil || err != nil {
		t.Errorf("of an empty one: %v, %v", got, err)
	}
	long := strings.Repeat("machine code ", block/4) // several blocks
	for _, code := range []string{"code", long} {
		for _, split := range []Split{nil, halves, func(io.ReaderAt, int64) ([]byte, *io.SectionReader) { return nil, nil }} {
			put(t, s, ID{1}, code, split)
			private, apart := t.TempDir(), &placed{}
			got, err := s.Take(ID{1}, private, apart.place)
			if err != nil || got == nil {
				t.Fatalf("%v, %v", got, err)
			}
			b, _ := os.ReadFile(filepath.Join(private, name))
			if string(got.Form) != "form" || string(b)+apart.code != code {
				t.Errorf("%q: %d bytes and %d apart", got.Form, len(b), len(apart.code))
			}
		}
	}
}

// Nothing that the key did not make is given: not with one bit changed, anywhere,
// not from another user, nor the code of another module.
func TestStore_GivesNothingForged(t *testing.T) {
	s := Store{t.TempDir(), key}
	put(t, s, ID{1}, "code", halves)
	entry, err := os.ReadFile(s.path(ID{1}))
	if err != nil {
		t.Fatal(err)
	}
	forged := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(s.path(ID{1}), content, 0o600); err != nil {
			t.Fatal(err)
		}
		private := t.TempDir()
		got, err := s.Take(ID{1}, private, new(placed).place)
		if files, _ := os.ReadDir(private); got != nil || !errors.Is(err, ErrForged) || len(files) > 0 {
			t.Errorf("%s: got %v, %v and %v", what, got, err, files)
		}
	}
	for i := range entry {
		changed := bytes.Clone(entry)
		changed[i] ^= 1 << (i % 8)
		forged("a bit", changed)
	}
	for n := range entry {
		forged("a part", entry[:n])
	}
	forged("more", append(bytes.Clone(entry), 0))
	put(t, s, ID{2}, "code", nil)
	other, err := os.ReadFile(s.path(ID{2}))
	if err != nil {
		t.Fatal(err)
	}
	forged("that of another module", other)
	for _, foreign := range []Store{{s.Dir, nil}, {s.Dir, []byte("another")}} {
		forged("of another key", sealed(t, foreign, name))
	}
	for _, bad := range []string{"", "../x", "wazero-v1/../../x", "/etc/passwd", name + "/x"} {
		forged("a name", sealed(t, s, bad))
	}
	if err := os.Remove(s.path(ID{1})); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.path(ID{1}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(ID{1}, t.TempDir(), nil); !errors.Is(err, ErrForged) {
		t.Errorf("a pipe: %v", err)
	}
}

// A compiler that was taken over can keep nothing from outside of its directory.
func TestStore_FollowsNoLinkOfACompiler(t *testing.T) {
	s, private, secret := Store{t.TempDir(), key}, t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("s"), 0o600), os.Mkdir(filepath.Join(private, "wazero-v1-amd64-linux"), 0o700), os.Symlink(secret, filepath.Join(private, name))); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(ID{1}, private, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Take(ID{1}, t.TempDir(), nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
