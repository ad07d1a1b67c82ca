// SPDX-License-Identifier: Apache-2.0

package wire

// The functions of this file process eight bytes at a time. Each iteration of a
// loop is expensive in a guest (see Skip), and the standard toolchain compares
// strings there byte by byte.

// load8 returns the first eight bytes of s in little-endian order. Compilers
// turn it into one load.
func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// loadUpTo8 is load8 for a string that may be shorter; missing bytes are 0.
func loadUpTo8(s string) uint64 {
	n := len(s)
	switch {
	case n >= 8:
		return load8(s)
	case n >= 4:
		return load4(s) | load4(s[n-4:])<<(8*(n-4)&63)
	case n > 0:
		return uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)&63) | uint64(s[n-1])<<(8*(n-1)&63)
	}
	return 0
}

func load4(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// equal returns a == b.
func equal(a, b string) bool {
	n := len(a)
	if n != len(b) {
		return false
	}
	if n <= 8 {
		return loadUpTo8(a) == loadUpTo8(b)
	}
	for i := 0; i < n-8; i += 8 {
		if load8(a[i:]) != load8(b[i:]) {
			return false
		}
	}
	return load8(a[n-8:]) == load8(b[n-8:])
}

// Bits of each byte of a word.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// isPlain reports whether a JSON string can contain all bytes of s without
// escapes.
func isPlain(s string) bool {
	n := len(s)
	for i := 0; i < n-8; i += 8 {
		if special(load8(s[i:])) {
			return false
		}
	}
	switch {
	case n >= 8:
		return !special(load8(s[n-8:]))
	case n >= 4:
		return !special(load4(s) | load4(s[n-4:])<<32)
	case n > 0:
		return !special(lowBits*' '&^0xffffff | uint64(s[0]) | uint64(s[n/2])<<8 | uint64(s[n-1])<<16)
	}
	return true
}

// special reports whether a byte of the word is below ' ', a quote or a
// backslash. The subtraction borrows into the highest bit of such a byte, which
// was not set before.
func special(w uint64) bool {
	quote, slash := w^lowBits*'"', w^lowBits*'\\'
	return ((w-lowBits*' ')&^w|(quote-lowBits)&^quote|(slash-lowBits)&^slash)&highBits != 0
}
