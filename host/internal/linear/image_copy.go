// SPDX-License-Identifier: Apache-2.0

package linear

// copySource is an image on the heap, which each memory copies.
type copySource struct{ content []byte }

func (s *copySource) create(size int) error {
	s.content = make([]byte, size)
	return nil
}

func (s *copySource) write(b []byte, at int) error {
	copy(s.content[at:], b)
	return nil
}

func (s *copySource) load(m *Memory, size int) error {
	if err := m.commit(size); err != nil {
		return err
	}
	copy(m.space[:size], s.content)
	return nil
}

func (s *copySource) close() { s.content = nil }
