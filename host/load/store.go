// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/wasmctl/wasmctl/host/internal/codecache"
	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/internal/shell"
)

// codeID names the code of a module. Its form follows from these values. Wazero's own name
// for it contains wazero's version and the features of the CPU.
func (c *Compiler) codeID(src *source) codecache.ID {
	digest := src.CodeDigest()
	if c.Isolated {
		digest = src.Digest() // guest processes read the files from the form
	}
	man, _, _ := src.Manifest()
	limits, _ := c.Limits.For(man)
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d %v %d %s", runtime.GOOS, runtime.GOARCH, formVersion, c.Isolated, limits.Stack, digest))
}

func (c *Compiler) store() codecache.Store {
	return codecache.Store{Dir: c.CacheDir, Key: c.CacheKey}
}

// throughDir compiles through a directory, in another process if that is worthwhile. It
// writes into a private directory, for this module alone.
func (c *Compiler) throughDir(ctx context.Context, code *Code, src *source) error {
	job := Compilation{Tenant: c.Tenant, Code: src.form, Workers: c.Workers, Yield: c.Yield}
	run := func(ctx context.Context, job Compilation) error { return job.Run(ctx) }
	if c.elsewhere(code, src) {
		if err := validate(ctx, job.Code); err != nil {
			return err // no process for bytes that are no module
		}
		run = c.Compiler
	}
	outer, err := shell.Of(job.Code)
	if err != nil {
		return err
	}
	return inPrivate("", func(private string) error {
		job.Dir = private
		if err := run(ctx, job); err != nil {
			return err
		}
		store, err := c.put(code, src, private, outer)
		if err == nil {
			err = inPrivate(private, func(dir string) error { return c.take(ctx, store, code, src, dir) })
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCacheDir, err)
		}
		return nil
	})
}

// fromStore takes the code from the cache, and reports whether the cache has it. Only the
// shell of the module is decoded for that.
func (c *Compiler) fromStore(ctx context.Context, code *Code, src *source) bool {
	if c.CacheDir == "" {
		return false
	}
	return inPrivate("", func(private string) error { return c.take(ctx, c.store(), code, src, private) }) == nil
}

// take takes the code from a store, by way of a private directory.
func (c *Compiler) take(ctx context.Context, store codecache.Store, code *Code, src *source, private string) error {
	apart := apartCode{dirs: []string{private, c.CacheDir}}
	entry, err := store.Take(c.codeID(src), private, apart.place)
	if err != nil {
		c.untaken(err)
	}
	if entry == nil {
		return errors.Join(errNotStored, apart.unmap())
	}
	outer, data, err := code.readForm(entry.Form)
	var m *machine
	if err == nil {
		m, err = fromCache(ctx, private, outer)
	}
	if err != nil {
		return errors.Join(err, apart.unmap())
	}
	if err := apart.install(m); err != nil {
		return errors.Join(err, apart.unmap(), m.close(ctx))
	}
	if apart.code != nil && !apart.inFile {
		c.Log.Debug("all of the compiled code stays in memory: no directory suits", "tried", apart.dirs)
	}
	if m.base, err = baseOf(data, code.StartSize); err != nil {
		return errors.Join(err, m.close(ctx))
	}
	code.machine = m
	return nil
}

// apartCode is machine code that wazero does not load, but is given.
type apartCode struct {
	dirs   []string // for its file
	code   []byte   // nil if wazero loads the code
	inFile bool
}

// place implements codecache.Place.
func (a *apartCode) place(size int64, in io.Reader) (err error) {
	a.code, a.inFile, err = layout.Map(size, in, a.dirs...)
	return err
}

// unmap unmaps the code, if no module has it.
func (a *apartCode) unmap() error {
	if a.code == nil {
		return nil
	}
	return layout.Unmap(a.code)
}

// install gives the code to a module that was just loaded.
func (a *apartCode) install(m *machine) error {
	if a.code == nil {
		return nil
	}
	if err := layout.Install(m.compiled, a.code); err != nil {
		return err
	}
	if a.inFile {
		m.inFile = a.code
	}
	return nil
}

// put puts code that was compiled into a directory into the cache, and returns the store
// that has it: one in that directory if the cache cannot be used. Trouble with the cache
// only costs time. Guest processes load their code themselves, in one part.
func (c *Compiler) put(code *Code, src *source, private string, outer []byte) (codecache.Store, error) {
	head := code.formHead(outer)
	split := layout.Split
	if c.Isolated {
		split = nil
	}
	id := c.codeID(src)
	if c.CacheDir != "" {
		err := c.store().Put(id, private, split, head, outer, src.data)
		if err == nil {
			return c.store(), nil
		}
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
	}
	store := codecache.Store{Dir: private}
	return store, store.Put(id, private, split, head, outer, src.data)
}

// headSize is the length of the numbers at the beginning of a stored form.
const headSize = 4 * 8

// formHead returns the numbers of a stored form. The shell and the data of the module follow.
func (c *Code) formHead(outer []byte) []byte {
	b := make([]byte, 0, headSize)
	for _, n := range []int64{c.MaxStack, c.work, int64(c.Globals), int64(len(outer))} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n)) //nolint:gosec // the bits of an i64
	}
	return b
}

// readForm reads a stored form.
func (c *Code) readForm(b []byte) (outer, data []byte, err error) {
	if len(b) < headSize {
		return nil, nil, errNotStored
	}
	var n [headSize / 8]int64
	for i := range n {
		n[i] = int64(binary.LittleEndian.Uint64(b[8*i:])) //nolint:gosec // the bits of an i64
	}
	b = b[headSize:]
	if n[3] < 0 || n[3] > int64(len(b)) {
		return nil, nil, errNotStored
	}
	c.MaxStack, c.work, c.Globals = n[0], n[1], int(n[2])
	if outer = b[:n[3]]; len(b) > len(outer) {
		data = b[n[3]:]
	}
	return outer, data, nil
}

// untaken reports an entry of the cache that is not used.
func (c *Compiler) untaken(err error) {
	if !errors.Is(err, codecache.ErrForged) {
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
		return
	}
	if c.OnForged != nil {
		c.OnForged()
	}
	c.Log.Warn("ignored compiled code that this user's key does not authenticate; compiling the module again", "dir", c.CacheDir, "error", err)
}
