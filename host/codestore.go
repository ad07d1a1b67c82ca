package host

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
)

// formVersion names the form in which modules are compiled. It is part of the name of
// what the cache keeps, so it must change with what compiler.form makes: a test holds
// that.
const formVersion = 4

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
func (c compiler) codeID(info *Info, code string) codecache.ID {
	stack, digest := c.cfg.LimitsFor(info.Manifest).Stack, code
	if c.cfg.Isolation != nil {
		digest = info.Digest // guest processes read the files from the form
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d %v %d %s", runtime.GOOS, runtime.GOARCH, formVersion, c.cfg.Isolation != nil, stack, digest))
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
	return inPrivate("", func(private string) error { return c.take(ctx, c.store(), code, src, private) }) == nil
}

// take makes code of what a store has, by way of a private directory.
func (c compiler) take(ctx context.Context, store codecache.Store, code *code, src *source, private string) error {
	apart := apartCode{dirs: []string{private, c.cfg.CacheDir}}
	entry, err := store.Take(src.id, private, apart.place)
	if err != nil {
		c.untaken(err)
	}
	if entry == nil {
		return errors.Join(errNotKept, apart.unmap())
	}
	hollow, data, err := code.readForm(entry.Form)
	if err == nil {
		err = code.fromCache(ctx, private, hollow)
	}
	if err != nil {
		return errors.Join(err, apart.unmap())
	}
	if err := apart.install(code); err != nil {
		return errors.Join(err, apart.unmap(), code.closeLocal(ctx))
	}
	if apart.code != nil && !apart.inFile {
		c.log.Debug("all of the compiled code stays in memory: no directory suits", "tried", apart.dirs)
	}
	if err := code.setBase(data); err != nil {
		return errors.Join(err, code.closeLocal(ctx))
	}
	return nil
}

// apartCode is machine code that wazero does not load, but is given.
type apartCode struct {
	dirs   []string // for its file
	code   []byte   // nil where wazero loads the code
	inFile bool
}

// place implements codecache.Place.
func (a *apartCode) place(size int64, in io.Reader) (err error) {
	a.code, a.inFile, err = layout.Map(size, in, a.dirs...)
	return err
}

// unmap gives it back where no module has it.
func (a *apartCode) unmap() error {
	if a.code == nil {
		return nil
	}
	return layout.Unmap(a.code)
}

// install gives it to a module that was just loaded.
func (a *apartCode) install(code *code) error {
	if a.code == nil {
		return nil
	}
	if err := layout.Install(code.compiled, a.code); err != nil {
		return err
	}
	if a.inFile {
		code.inFile = a.code
	}
	return nil
}

// rest gives the memory of code back that was executed: the start code above all, which
// no instance from an image runs again.
func (c *code) rest() {
	if c.inFile != nil {
		_ = layout.Rest(c.inFile) // it is in memory then
	}
}

// keep puts code that was compiled into a directory into the cache, and returns where it
// is: in a store in that directory where the cache does not have it. Trouble with the
// cache costs time only. Guest processes load their code by themselves, as a whole.
func (c compiler) keep(code *code, src *source, private string, hollow []byte) (codecache.Store, error) {
	form := code.appendForm(hollow, src.data)
	split := layout.Split
	if c.cfg.Isolation != nil {
		split = nil
	}
	if c.cfg.CacheDir != "" {
		err := c.store().Put(src.id, private, form, split)
		if err == nil {
			return c.store(), nil
		}
		c.warn(fmt.Errorf("%w: %w", ErrCacheDir, err))
	}
	store := codecache.Store{Dir: private}
	return store, store.Put(src.id, private, form, split)
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
