// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"

	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/shell"
)

// baseOf returns the memory of start bytes with which instances start, from a data section
// that was detached from the module. So wazero neither keeps the data nor copies it into
// each instance: instances share the pages that they do not change. It is nil if data is
// nil, because then wazero has the data.
func baseOf(data []byte, start int64) (*linear.Image, error) {
	if data == nil || start == 0 {
		return nil, nil //nolint:nilnil // documented
	}
	segments, ok := shell.Segments(data, start)
	if !ok {
		return nil, fmt.Errorf("BUG: data section of %d bytes", len(data))
	}
	scratch, err := linear.Reserve(uint64(start)) //nolint:gosec // not negative
	if err != nil {
		return nil, err
	}
	defer scratch.Free()
	content, err := scratch.Grow(uint64(start)) //nolint:gosec // not negative
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		copy(content[s.At:], s.Bytes)
	}
	return linear.NewImage(content)
}
