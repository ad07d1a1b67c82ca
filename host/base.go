package host

import (
	"fmt"

	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/internal/shell"
)

// setBase makes the memory that instances start with of a data section that was
// detached from the module; data is nil where wazero has it. So wazero neither keeps the
// data nor copies it into each instance: what an instance does not change it shares.
func (c *code) setBase(data []byte) error {
	if data == nil || c.startSize == 0 {
		return nil
	}
	segments, ok := shell.Segments(data, c.startSize)
	if !ok {
		return fmt.Errorf("BUG: data section of %d bytes", len(data))
	}
	scratch, err := linear.Reserve(uint64(c.startSize)) //nolint:gosec // not negative
	if err != nil {
		return err
	}
	defer scratch.Free()
	content, err := scratch.Grow(uint64(c.startSize)) //nolint:gosec // not negative
	if err != nil {
		return err
	}
	for _, s := range segments {
		copy(content[s.At:], s.Bytes)
	}
	c.base, err = linear.NewImage(content)
	return err
}
