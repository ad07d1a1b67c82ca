package shared

// Mmb is a buffer; natively it is mapped by the system.
type Mmb []byte

// NewMMB returns a buffer of that size.
func NewMMB(size int64) (Mmb, error) { return make(Mmb, size), nil }

// Delete frees the buffer.
func (m *Mmb) Delete() { *m = nil }
