// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
)

const (
	// MinSize is the smallest size of code, in bytes, for which a file is worth its cost.
	MinSize = 128 << 10

	magic    = "WAZEVO"
	stubSize = 16
	trap     = 0xcc // on amd64; the stub is never executed on any architecture
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Split divides a cache file of wazero, of size bytes, into the machine code and the rest,
// with a stub in place of the code. Wazero loads the rest as if it were the whole module.
// Code is nil if wazero should load the whole file itself: because there is little code,
// or because the file or wazero's fields are not as assumed. The content of the file is
// trusted no more than wazero trusts it.
func Split(r io.ReaderAt, size int64) (head []byte, code *io.SectionReader) {
	lead := readLead(r, size)
	if lead == nil || !mapped || !Known() {
		return nil, nil
	}
	at := int64(len(lead))
	length := int64(binary.LittleEndian.Uint64(lead[at-8:])) //nolint:gosec // checked
	if length < MinSize || length > size-at-crc32.Size {
		return nil, nil
	}
	tail := make([]byte, size-at-length)
	if _, err := r.ReadAt(tail, at+length); err != nil {
		return nil, nil
	}
	stub := bytes.Repeat([]byte{trap}, stubSize)
	head = binary.LittleEndian.AppendUint64(lead[:at-8], stubSize)
	head = append(head, stub...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(stub, castagnoli))
	return append(head, tail[crc32.Size:]...), io.NewSectionReader(r, at, length)
}

// readLead reads the bytes before the code: the magic, a byte with the length of the
// version, the version, the number of functions, their offsets, and the length of the
// code. It returns nil if the file does not begin so.
func readLead(r io.ReaderAt, size int64) []byte {
	const first = len(magic) + 1
	lead := make([]byte, first, 64)
	read := func(n int64) bool {
		had := int64(len(lead))
		if n > size-had {
			return false
		}
		lead = append(lead, make([]byte, n)...)
		_, err := r.ReadAt(lead[had:], had)
		return err == nil
	}
	if _, err := r.ReadAt(lead, 0); err != nil || string(lead[:len(magic)]) != magic {
		return nil
	}
	if !read(int64(lead[first-1]) + 4) {
		return nil
	}
	functions := binary.LittleEndian.Uint32(lead[len(lead)-4:])
	if !read(int64(functions)*8 + 8) {
		return nil
	}
	return lead
}
