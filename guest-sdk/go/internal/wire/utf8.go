package wire

import "unicode/utf8"

// validUTF8 is utf8.ValidString, and quicker where all is ASCII, as it mostly
// is: utf8.ValidString takes the last bytes one by one, and each turn of a loop
// is dear in a guest (see Skip). This takes the last ones together with some that were
// seen before.
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
