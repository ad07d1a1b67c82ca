package host

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// entry is one way into a guest.
type entry struct {
	name   string
	limit  time.Duration // how long it may run
	access access        // what it may use
}

// entry returns an entry with its bounds.
func (g *revision) entry(name string) entry {
	e := entry{name: name, limit: g.limits.Timeout, access: accessAll}
	switch name {
	case abi.ExportMap, abi.ExportFilter:
		e.limit, e.access = min(e.limit, HookTimeout), accessCache
	case abi.ExportConfigure:
		e.access = accessConfig
	}
	return e
}

// message is the input of an entry: head[:split], first, head[split:], second.
type message struct {
	head          []byte
	split         int
	first, second []byte
}

func (m *message) size() int { return len(m.head) + len(m.first) + len(m.second) }

// outputError is an error of what a guest returned.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

func outputErrorf(format string, args ...any) error { return &outputError{fmt.Errorf(format, args...)} }

// enter calls an entry within its bounds and reads what it returned. An error
// there closes the instance; a message that is too large never reaches the
// guest.
func (in *instance) enter(ctx context.Context, e entry, m message, read func(v uint64) error) error {
	if n := m.size(); n > abi.MaxBytes {
		return fmt.Errorf("guest[%s]: request of %d bytes: %w", e.name, n, abi.ErrTooLarge)
	}
	in.gen.cfg.Secrets.Learn(m.first)
	in.gen.cfg.Secrets.Learn(m.second)
	in.entered++
	err := in.guarded(ctx, e, func() error {
		v, err := in.exchange(e, m)
		if err != nil {
			return err
		}
		return read(v)
	})
	if err != nil {
		in.gen.shared.recycled.add(recycledBy(err))
		in.close(ctx)
	}
	return err
}

// exchange hands a message over and returns what the entry returns: section 2
// of ABI.md.
func (in *instance) exchange(e entry, m message) (uint64, error) {
	if in.remote != nil {
		return in.remote.call(e.name, e.access, m)
	}
	fn := in.function(e.name)
	size := uint32(m.size()) //nolint:gosec // at most MaxBytes
	in.stack[0] = uint64(size)
	in.fuelBudget.enterFrame()
	if err := in.buffer.CallWithStack(&in.interrupt, in.stack[:]); err != nil {
		return 0, err
	}
	ptr := u32(in.stack[0])
	if err := in.checkBuffer(ptr, size); err != nil {
		return 0, err
	}
	at := ptr
	for _, part := range [...][]byte{m.head[:m.split], m.first, m.head[m.split:], m.second} {
		in.memory.Write(at, part)
		at += uint32(len(part)) //nolint:gosec // at most MaxBytes
	}
	in.stack[0], in.stack[1] = uint64(ptr), uint64(size)
	in.run.access = e.access
	in.fuelBudget.enterFrame()
	err := fn.CallWithStack(&in.interrupt, in.stack[:])
	in.run.access = accessNone
	return in.stack[0], err
}

func (in *instance) checkBuffer(ptr, size uint32) error {
	switch {
	case ptr == 0:
		return outputErrorf("%w refused a request of %d bytes", abi.ErrBuffer, size)
	case ptr%8 != 0:
		return outputErrorf("%w returned %d: want 8-byte alignment", abi.ErrBuffer, ptr)
	case !inside(in.memory, ptr, size):
		return outputErrorf("%w returned %d, but %d bytes from there do not lie in memory of %d bytes", abi.ErrBuffer, ptr, size, in.memory.Size())
	}
	return nil
}

// result returns a view of what an entry returned; it holds until the next
// call.
func (in *instance) result(v uint64) ([]byte, error) {
	if in.remote != nil {
		return in.remote.result, nil
	}
	ptr, length := abi.UnpackPointer(v)
	b, ok := in.memory.Read(ptr, length)
	if !ok {
		return nil, outputErrorf("result of %d bytes at %d does not lie in memory of %d bytes", length, ptr, in.memory.Size())
	}
	if int64(length) > in.gen.limits.ResultBytes {
		what := fmt.Sprintf("result of %d bytes is longer than it may be", length)
		return nil, &outputError{in.gen.limitError(abi.LimitResultBytes, what, abi.ErrTooLarge)}
	}
	return b, nil
}

// blockText is how blocks are named in messages.
func blockText(what string, ptr, length uint32) string {
	return fmt.Sprintf("%s block of %d bytes at %d does not lie in memory", what, length, ptr)
}
