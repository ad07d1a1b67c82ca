// SPDX-License-Identifier: Apache-2.0

package wasi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// fake is a guest whose effects are recorded.
type fake struct {
	module      api.Module
	descriptors Descriptors
	files       *Files
	effects     *effects
	charged     int
}

// effects are what a call did outside of memory.
type effects struct {
	Stdout, Stderr bytes.Buffer
	Slept          []time.Duration
}

const (
	nowNS  = 1_700_000_000_123_456_789
	monoNS = 987_654_321
)

// source is randomness that is the same for both.
type source struct{}

func (source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0x5a
	}
	return len(p), nil
}

func (f *fake) Memory() Memory            { return f.module.Memory() }
func (f *fake) Charge(n int)              { f.charged += n }
func (f *fake) Program() string           { return "program" }
func (f *fake) Descriptors() *Descriptors { return &f.descriptors }
func (f *fake) Files() *Files             { return f.files }
func (f *fake) Now() time.Time            { return time.Unix(0, nowNS) }
func (f *fake) Mono() int64               { return monoNS }
func (f *fake) Sleep(d time.Duration)     { f.effects.Slept = append(f.effects.Slept, d) }
func (f *fake) Exit(code uint32)          { panic(sys.NewExitError(code)) }
func (f *fake) Random(b []byte) error     { _, err := io.ReadFull(source{}, b); return err }
func (f *fake) Write(fd int32, b []byte) {
	if fd == 1 {
		f.effects.Stdout.Write(b)
	} else {
		f.effects.Stderr.Write(b)
	}
}

// forwarder is a module with one page of memory that imports all functions and
// exports one of the same name and type for each, which calls it.
func forwarder(names []string) []byte {
	leb := func(n int) []byte {
		var b []byte
		for ; n > 127; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(b, byte(n))
	}
	text := func(s string) []byte { return append(leb(len(s)), s...) }
	section := func(id byte, n int, body []byte) []byte {
		body = append(leb(n), body...)
		return append(append([]byte{id}, leb(len(body))...), body...)
	}
	var types, imports, funcs, exports, code []byte
	all := Funcs()
	for i, name := range names {
		f := all[name]
		types = slices.Concat(types, []byte{0x60}, leb(len(f.Params)), f.Params, leb(len(f.Results)), f.Results)
		imports = slices.Concat(imports, text(Module), text(name), []byte{0}, leb(i))
		funcs = append(funcs, leb(i)...)
		exports = slices.Concat(exports, text(name), []byte{0}, leb(len(names)+i))
		body := []byte{0}
		for p := range f.Params {
			body = append(body, 0x20, byte(p))
		}
		body = append(append(append(body, 0x10), leb(i)...), 0x0b)
		code = append(append(code, leb(len(body))...), body...)
	}
	exports = append(append(exports, text("memory")...), 2, 0)
	n := len(names)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(1, n, types), section(2, n, imports), section(3, n, funcs),
		section(5, 1, []byte{0, 1}), section(7, n+1, exports), section(10, n, code))
}

func names() []string {
	var out []string
	for name := range Funcs() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// wazeros is a module on wazero's own WASI.
func wazeros(t *testing.T, ctx context.Context, wasm []byte, e *effects) api.Module { //nolint:revive // the test is what it is about
	t.Helper()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = r.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithArgs("program").
		WithFSConfig(wazero.NewFSConfig().WithFSMount(theirFiles(), rootName)).WithStdout(&e.Stdout).WithStderr(&e.Stderr).WithRandSource(source{}).
		WithWalltime(func() (int64, int32) { return nowNS / 1_000_000_000, nowNS % 1_000_000_000 }, 1).WithNanotime(func() int64 { return monoNS }, 1).
		WithNanosleep(func(ns int64) { e.Slept = append(e.Slept, time.Duration(ns)) }))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ours is a module on this package's WASI.
func ours(t *testing.T, ctx context.Context, wasm []byte, e *effects) (api.Module, *fake) { //nolint:revive // as above
	t.Helper()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { _ = r.Close(ctx) })
	g := &fake{effects: e, files: testFiles()}
	b := r.NewHostModuleBuilder(Module)
	for name, f := range Funcs() {
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { f.Call(g, stack) }), f.Params, f.Results).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	g.module = m
	return m, g
}

// The functions are those of wazero, with their types.
func TestFuncs_AreAllOfPreview1(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = r.Close(ctx) }()
	c, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text := func(params, results []api.ValueType) string { return fmt.Sprintf("%x -> %x", params, results) }
	want, got := map[string]string{}, map[string]string{}
	for name, def := range c.ExportedFunctions() {
		want[name] = text(def.ParamTypes(), def.ResultTypes())
	}
	for name, f := range Funcs() {
		got[name] = text(f.Params, f.Results)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 46 {
		t.Errorf("%d functions, -wazero +ours:\n%s", len(got), diff)
	}
}

const memorySize = 64 << 10

// argument is a parameter that is often of use: a place in memory, a small
// number, or anything.
func argument(rnd *rand.Rand) uint64 {
	switch rnd.IntN(8) {
	case 0, 1, 2:
		return uint64(rnd.IntN(4))
	case 3, 4, 5:
		return uint64(rnd.IntN(memorySize))
	case 6:
		return uint64(rnd.IntN(200))
	}
	return rnd.Uint64()
}

// fill writes what functions may find behind a pointer: vectors and
// subscriptions that mostly lie in memory, between noise.
func fill(rnd *rand.Rand, b []byte) {
	for i := 0; i+48 <= len(b); i += 8 {
		switch rnd.IntN(4) {
		case 0:
			le.PutUint32(b[i:], uint32(rnd.IntN(memorySize)))
			le.PutUint32(b[i+4:], uint32(rnd.IntN(400)))
		case 1:
			le.PutUint64(b[i:], uint64(rnd.IntN(4)))
		case 2:
			le.PutUint64(b[i:], 0)
		default:
			le.PutUint64(b[i:], rnd.Uint64()>>1) // wazero takes longer times for none
		}
	}
}

// ofFolder reports whether an error is one of those for who reads or writes a folder.
func ofFolder(errno uint64) bool { return Errno(errno) == isFolder || Errno(errno) == badFile }

// differs says in which cases ours answers otherwise, on purpose. It is asked before the
// call, with their being 0, and behind it.
func differs(name string, p []uint64, their, our uint64) bool {
	switch name {
	case "fd_prestat_get", "fd_prestat_dir_name":
		return u32(p[0]) < 3 // wazero takes a stream for a directory without a name
	case "fd_filestat_set_times":
		return u32(p[0]) < 3 // wazero's host panics
	case "fd_allocate", "fd_filestat_set_size", "fd_fdstat_set_flags":
		return Errno(their) == isFolder // of the root only
	case "fd_read", "fd_write", "fd_pread", "fd_pwrite", "sock_send", "sock_recv":
		return u32(p[2]) > maxVectors || ofFolder(their) && ofFolder(our) || name == "fd_pread" && Errno(their) == invalid // behind the end
	case "poll_oneoff":
		return u32(p[2]) > maxSubscriptions
	case "fd_renumber":
		return i32(p[1]) >= maxOpen
	case "fd_readdir": // wazero reads in the order of cookies, and a buffer as far as it is used
		return Errno(their) == noEntry || Errno(our) == fault
	}
	if strings.HasPrefix(name, "path_") && (Errno(our) == nameTooLong || Errno(our) == notDir && their != 0) {
		return true // wazero has no bound, and its files do not know what is below a file
	}
	// wazero's files lack what changes a folder; ours know what is in the way.
	return strings.HasPrefix(name, "path_") && Errno(their) == noSystem && our != 0
}

// What a guest observes is what wazero's WASI without files shows it, on random
// arguments and memory, for functions called in a row on one instance.
func TestFuncs_AnswerAsWazeros(t *testing.T) {
	const rounds = 8_000
	ctx := t.Context()
	all, list := Funcs(), names()
	wasm := forwarder(list)
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	image := make([]byte, memorySize)
	for round := 0; round < rounds; {
		var theirEffects, ourEffects effects
		theirs := wazeros(t, ctx, wasm, &theirEffects)
		mine, _ := ours(t, ctx, wasm, &ourEffects)
		for range 400 {
			round++
			name := list[rnd.IntN(len(list))]
			if rnd.IntN(2) == 0 {
				name = ofFiles[rnd.IntN(len(ofFiles))]
			}
			if name == "proc_exit" {
				continue
			}
			f := all[name]
			p := make([]uint64, len(f.Params))
			for i := range p {
				if p[i] = argument(rnd); f.Params[i] == api.ValueTypeI32 {
					p[i] = uint64(uint32(p[i]))
				}
			}
			fill(rnd, image)
			fit(rnd, name, p, image)
			if name == "fd_close" && p[0] <= rootFD && rnd.IntN(20) > 0 || differs(name, p, 0, 0) {
				continue
			}
			theirs.Memory().Write(0, image)
			mine.Memory().Write(0, image)
			theirEffects, ourEffects = effects{}, effects{}
			want, err := theirs.ExportedFunction(name).Call(ctx, p...)
			if err != nil {
				t.Fatalf("%s(%x): wazero: %v", name, p, err)
			}
			got, err := mine.ExportedFunction(name).Call(ctx, p...)
			if err != nil {
				t.Fatalf("%s(%x): %v", name, p, err)
			}
			if differs(name, p, want[0], got[0]) {
				continue
			}
			if got[0] != want[0] {
				t.Fatalf("%s(%x): got errno %d, wazero %d", name, p, got[0], want[0])
			}
			a, _ := theirs.Memory().Read(0, memorySize)
			b, _ := mine.Memory().Read(0, memorySize)
			if name == "fd_readdir" && want[0] == 0 {
				dropSerials(a, p)
				dropSerials(b, p)
			}
			if want[0] == 0 && !bytes.Equal(a, b) {
				t.Fatalf("%s(%x): memory differs", name, p)
			}
			if want[0] != 0 { // what a call that failed has done is nobody's business
				continue
			}
			if !bytes.Equal(theirEffects.Stdout.Bytes(), ourEffects.Stdout.Bytes()) || !bytes.Equal(theirEffects.Stderr.Bytes(), ourEffects.Stderr.Bytes()) {
				t.Fatalf("%s(%x): output differs", name, p)
			}
			// Without a clock wazero would sleep for 292 years.
			theirEffects.Slept = slices.DeleteFunc(theirEffects.Slept, func(d time.Duration) bool { return d == 1<<63-1 })
			ourEffects.Slept = slices.DeleteFunc(ourEffects.Slept, func(d time.Duration) bool { return d == 1<<63-1 })
			if !slices.Equal(theirEffects.Slept, ourEffects.Slept) {
				t.Fatalf("%s(%x): slept %v, wazero %v", name, p, ourEffects.Slept, theirEffects.Slept)
			}
		}
	}
}
