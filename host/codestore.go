package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
	"github.com/wasmctl/wasmctl/host/internal/codefile"
)

// formVersion names the form in which modules are compiled. It is part of the name of
// what the cache keeps, so it must change with what compiler.form makes: a test holds
// that.
const formVersion = 2

// source is a module that is to be compiled.
type source struct {
	wasm []byte
	bin  *binaryModule
	id   codecache.ID
	form []byte // that is compiled; nil before it is needed
	data []byte // detached from the form; nil where there is none
}

// codeID names the code of a module: the form in which it is compiled follows from
// these. wazero's version and the features of the CPU are in wazero's own name for it.
func (c compiler) codeID(info *Info) codecache.ID {
	stack := int64(0)
	if c.cfg.CPU == CPUFuel {
		stack = c.cfg.LimitsFor(info.Manifest).Stack
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s %v %d %s", runtime.GOOS, runtime.GOARCH, formVersion, c.cfg.CPU, c.cfg.Isolation != nil, stack, info.Digest))
}

func (c compiler) store() codecache.Store {
	return codecache.Store{Dir: c.cfg.CacheDir, Key: c.cfg.CacheKey}
}

// fromStore makes code of what the cache has, and reports whether it has it. Of the
// module, nothing but its shell is decoded for that.
func (c compiler) fromStore(ctx context.Context, code *code, src *source) bool {
	if c.cfg.CacheDir == "" {
		return false
	}
	err := inPrivate("", func(private string) error {
		entry, err := c.store().Take(src.id, private)
		if err != nil {
			c.untaken(err)
		}
		if entry == nil {
			return errNotKept
		}
		hollow, data, err := code.readForm(entry.Form)
		if err != nil {
			return err
		}
		if err := code.fromCache(ctx, private, hollow, c.cfg.CPU == CPUClose); err != nil {
			return err
		}
		if err := errors.Join(code.setBase(data), c.moveCode(code, private)); err != nil {
			return errors.Join(err, code.closeLocal(ctx))
		}
		return nil
	})
	return err == nil
}

// moveCode moves code that was just loaded out of memory, into a file in a private
// directory or else in that of the cache. It is as good where that does not work. An
// error is that it was lost.
func (c compiler) moveCode(code *code, private string) error {
	machine := codefile.Of(code.compiled)
	if len(machine) < codefile.MinSize {
		return nil
	}
	err := codefile.Move(machine, private)
	if err != nil && !errors.Is(err, codefile.ErrLost) && c.cfg.CacheDir != "" {
		err = codefile.Move(machine, c.cfg.CacheDir)
	}
	if errors.Is(err, codefile.ErrLost) {
		return err
	}
	if err != nil {
		c.log.Debug("all of the compiled code stays in memory", "reason", err)
		return nil
	}
	code.inFile = machine
	return nil
}

// rest gives the memory of code back that was executed: the start code above all, which
// no instance from an image runs again.
func (c *code) rest() {
	if c.inFile != nil {
		_ = codefile.Rest(c.inFile) // it is in memory then
	}
}

// keep puts code that was compiled into a directory into the cache. Trouble with that
// costs time only.
func (c compiler) keep(code *code, src *source, private string, hollow []byte) {
	if c.cfg.CacheDir == "" {
		return
	}
	if err := c.store().Put(src.id, private, "", code.appendForm(hollow, src.data)); err != nil {
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
	}
}

// formHead is the length of the numbers that the cache keeps of a form.
const formHead = 4 * 8

// appendForm returns what the cache keeps beside compiled code: numbers, shell, data.
func (c *code) appendForm(hollow, data []byte) []byte {
	b := make([]byte, 0, formHead+len(hollow)+len(data))
	for _, n := range []int64{c.maxStack, c.work, int64(c.globals), int64(len(hollow))} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the bits of an i64
	}
	return append(append(b, hollow...), data...)
}

// readForm is the reverse.
func (c *code) readForm(b []byte) (hollow, data []byte, err error) {
	if len(b) < formHead {
		return nil, nil, errNotKept
	}
	var n [formHead / 8]int64
	for i := range n {
		n[i] = int64(binary.LittleEndian.Uint64(b[8*i:])) //nolint:gosec // the bits of an i64
	}
	b = b[formHead:]
	if n[3] < 0 || n[3] > int64(len(b)) {
		return nil, nil, errNotKept
	}
	c.maxStack, c.work, c.globals = n[0], n[1], int(n[2])
	if hollow = b[:n[3]]; len(b) > len(hollow) {
		data = b[n[3]:]
	}
	return hollow, data, nil
}

// untaken reports an entry of the cache that is not used.
func (c compiler) untaken(err error) {
	if !errors.Is(err, codecache.ErrForged) {
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
		return
	}
	if c.cfg.OnForged != nil {
		c.cfg.OnForged()
	}
	c.log.Warn("ignored compiled code that this user's key does not authenticate; compiling the module again", "dir", c.cfg.CacheDir, "error", err)
}
