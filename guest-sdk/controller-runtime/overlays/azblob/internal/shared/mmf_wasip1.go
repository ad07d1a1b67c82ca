// SPDX-License-Identifier: Apache-2.0

package shared

// Mmb is a buffer. In native programs, the system maps it.
type Mmb []byte

// NewMMB returns a buffer of that size.
func NewMMB(size int64) (Mmb, error) { return make(Mmb, size), nil }

// Delete frees the buffer.
func (m *Mmb) Delete() { *m = nil }
