package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
)

// formVersion names the form in which modules are compiled. It is part of the name of
// what the cache keeps, so it must change with what compiler.form makes: a test holds
// that.
const formVersion = 1

// source is a module that is to be compiled.
type source struct {
	wasm []byte
	bin  *binaryModule
	id   codecache.ID
	form []byte // that is compiled; nil before it is needed
}

// codeID names the code of a module: the form in which it is compiled follows from
// these. wazero's version and the features of the CPU are in wazero's own name for it.
func (c compiler) codeID(info *Info) codecache.ID {
	stack := int64(0)
	if c.cfg.CPU == CPUFuel {
		stack = c.cfg.LimitsFor(info.Manifest).Stack
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s %d %s", runtime.GOOS, runtime.GOARCH, formVersion, c.cfg.CPU, stack, info.Digest))
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
		hollow, err := code.readForm(entry.Form)
		if err != nil {
			return err
		}
		return code.fromCache(ctx, private, hollow, c.cfg.CPU == CPUClose)
	})
	return err == nil
}

// keep puts code that was compiled into a directory into the cache. Trouble with that
// costs time only.
func (c compiler) keep(code *code, src *source, private string, hollow []byte) {
	if c.cfg.CacheDir == "" {
		return
	}
	if err := c.store().Put(src.id, private, "", code.appendForm(hollow)); err != nil {
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
	}
}

// formHead is how long what the cache keeps of a form beside its shell is.
const formHead = 16

// appendForm returns what the cache keeps beside compiled code.
func (c *code) appendForm(hollow []byte) []byte {
	b := make([]byte, 0, formHead+len(hollow))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.maxStack)) //nolint:gosec // the bits of an i64
	b = binary.LittleEndian.AppendUint64(b, uint64(c.work))     //nolint:gosec // as above
	return append(b, hollow...)
}

// readForm is the reverse, and returns the shell.
func (c *code) readForm(b []byte) (hollow []byte, err error) {
	if len(b) < formHead {
		return nil, errNotKept
	}
	c.maxStack = int64(binary.LittleEndian.Uint64(b)) //nolint:gosec // the bits of an i64
	c.work = int64(binary.LittleEndian.Uint64(b[8:])) //nolint:gosec // as above
	return b[formHead:], nil
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
