// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package linear

// reserve takes nothing yet: what is on the heap is counted, touched or not.
func reserve(int) ([]byte, error) { return nil, nil }

// commit makes room for as much again, so that a guest that grows page by page
// does not copy its memory each time.
func (m *Memory) commit(n int) error {
	if n > len(m.space) {
		grown := make([]byte, min(2*n, m.most))
		copy(grown, m.space)
		m.space = grown
	}
	return nil
}

func (m *Memory) free() {}
