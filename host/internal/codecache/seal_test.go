// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// sealAll seals content in parts of random lengths.
func sealAll(t *testing.T, s Store, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := s.sealer(ID{1}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 {
		n := 1 + rand.IntN(len(content))
		if _, err := w.Write(content[:n]); err != nil {
			t.Fatal(err)
		}
		content = content[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func openAll(t *testing.T, s Store, sealed []byte) ([]byte, error) {
	t.Helper()
	r, err := s.opener(ID{1}, bytes.NewReader(sealed))
	if err != nil {
		t.Fatal(err)
	}
	return io.ReadAll(r)
}

// What is sealed is opened, whatever its length, and blocks of it in another order, or
// without the last ones, are not: what was read before that is a beginning of it.
func TestSeal_BlocksHoldInTheirPlaceOnly(t *testing.T) {
	s := Store{Key: key}
	for _, size := range []int{0, 1, block - 1, block, block + 1, 2 * block, 3*block + 17} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(rand.Uint32())
		}
		sealed := sealAll(t, s, content)
		if got, err := openAll(t, s, sealed); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes: %d bytes, %v", size, len(got), err)
		}
		if again := sealAll(t, s, content); bytes.Equal(again[saltSize:], sealed[saltSize:]) {
			t.Errorf("%d bytes: the same tags under another salt", size)
		}
		wrong := map[string][]byte{"a byte more": append(slices.Clone(sealed), 0)}
		for at := saltSize + tagSize + block; at < len(sealed); at += tagSize + block {
			wrong["the first blocks"] = sealed[:at]
			wrong["the first block twice"] = slices.Concat(sealed[:at], sealed[saltSize:])
			wrong["without the first block"] = slices.Concat(sealed[:saltSize], sealed[at:])
		}
		for what, b := range wrong {
			if got, err := openAll(t, s, b); !errors.Is(err, ErrForged) || !bytes.HasPrefix(content, got) {
				t.Errorf("%d bytes: %s: %d bytes, %v", size, what, len(got), err)
			}
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s := Store{Key: key}
	var out bytes.Buffer
	w, err := s.sealer(ID{1}, &out)
	if err != nil {
		b.Fatal(err)
	}
	if _, err = w.Write(make([]byte, 64<<20)); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(64 << 20)
	for b.Loop() {
		r, err := s.opener(ID{1}, bytes.NewReader(out.Bytes()))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
}
