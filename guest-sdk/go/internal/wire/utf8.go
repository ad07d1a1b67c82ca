package wire

import "unicode/utf8"

// validUTF8 is utf8.ValidString, and quicker where all is ASCII, as it mostly
// is: utf8.ValidString takes the last bytes one by one, and each turn of a loop
// is dear in a guest (see Skip). This takes sixteen at a time, and the last ones
// together with some that were seen before.
func validUTF8(s string) bool {
	var bits byte
	switch n := len(s); {
	case n > 16:
		bits = orLong(s)
	case n >= 8:
		bits = or8(s) | or8(s[n-8:])
	case n >= 4:
		bits = or4(s) | or4(s[n-4:])
	case n >= 2:
		bits = s[0] | s[1] | s[n-1]
	case n == 1:
		bits = s[0]
	}
	return bits < utf8.RuneSelf || utf8.ValidString(s)
}

// orLong joins the bits of all bytes, more than sixteen.
func orLong(s string) byte {
	bits := or8(s[len(s)-16:]) | or8(s[len(s)-8:])
	for len(s) > 16 {
		bits |= or8(s) | or8(s[8:])
		s = s[16:]
	}
	return bits
}

// or8 joins the bits of the first eight bytes.
func or8(s string) byte {
	_ = s[7]
	return s[0] | s[1] | s[2] | s[3] | s[4] | s[5] | s[6] | s[7]
}

// or4 joins the bits of the first four bytes.
func or4(s string) byte {
	_ = s[3]
	return s[0] | s[1] | s[2] | s[3]
}
