package wire

import "unicode/utf8"

// validUTF8 is utf8.ValidString, and quicker where all is ASCII, as it mostly
// is: utf8.ValidString takes the last bytes one by one, and each turn of a loop
// is dear in a guest (see Skip). This takes sixteen at a time, and at the end
// the last ones again together with some that it has seen.
func validUTF8(s string) bool {
	var all byte
	rest := s
	for len(rest) > 16 {
		all |= or8(rest) | or8(rest[8:])
		rest = rest[16:]
	}
	switch n := len(rest); {
	case n >= 8:
		all |= or8(rest) | or8(rest[n-8:])
	case n >= 4:
		all |= or4(rest) | or4(rest[n-4:])
	case n >= 2:
		all |= rest[0] | rest[1] | rest[n-1]
	case n == 1:
		all |= rest[0]
	}
	return all < utf8.RuneSelf || utf8.ValidString(s)
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
