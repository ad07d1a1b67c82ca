// SPDX-License-Identifier: Apache-2.0

package wire

import "unicode/utf8"

// validUTF8 is utf8.ValidString, but faster for strings in ASCII, which most
// are: utf8.ValidString checks the last bytes one by one, and each iteration of
// a loop is expensive in a guest (see Skip). This function reads the last eight
// bytes at once, which may overlap the bytes before.
func validUTF8(s string) bool {
	var bits uint64
	n := len(s)
	for i := 0; i < n-8; i += 8 {
		bits |= load8(s[i:])
	}
	if n >= 8 {
		bits |= load8(s[n-8:])
	} else {
		bits = loadUpTo8(s)
	}
	return bits&highBits == 0 || utf8.ValidString(s)
}
