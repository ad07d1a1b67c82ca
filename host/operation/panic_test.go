// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

const goDump = `deciding
panic: cannot bear s-3

goroutine 1 [running]:
main.(*thing).fail(...)
	example.com/gop/reconcile.go:42
main.deep({0x20e036, 0x3})
	example.com/gop/reconcile.go:45 +0x7
github.com/wasmctl/wasmctl/guest-sdk/go.(*guest).enter(0x1631e0, {0x31067, 0x9}, {0x0, 0x0, 0x0})
	github.com/wasmctl/wasmctl/guest-sdk/go@v0.1.0/guest.go:79 +0x1a

goroutine 2 [chan receive]:
main.other()
	example.com/gop/other.go:1 +0x7`

const goNamelessTrace = "wasm error: unreachable\nwasm stack trace:\n\t.$1364(i32) i32\n\t.$705(i32) i32"

const rustTrace = "wasm error: unreachable\nwasm stack trace:" + `
	rsp.wasm._RNvCsfLfy6EI15iL_7___rustc12___rust_abort()
	rsp.wasm._RINvNtNtCsebHcaeoSrxy_3std3sys9backtrace26___rust_end_short_backtraceNCNvNtB6_9panicking13panic_handler0zEB6_(i32)
	rsp.wasm._RNvNtCsgXGp5Oqx2Ny_4core9panicking9panic_fmt(i32,i32,i32)
	rsp.wasm._ZN3rsp9reconcile5Thing4fail17h9af4fb328adb7870E(i32)
	rsp.wasm._ZN3rsp9reconcile4deep17h29687c4c9f18e51dE(i32,i32)
	rsp.wasm._ZN3rsp9reconcile4deep17h29687c4c9f18e51dE(i32,i32)
	rsp.wasm._ZN7wasmctl10reconciler3run28_$u7b$$u7b$closure$u7d$$u7d$17hd5d606e88a406063E(i32,i32,i32,i32)
	rsp.wasm.reconcile(i32,i32) i64`

const rustStack = "\n\trsp::reconcile::Thing::fail\n\trsp::reconcile::deep (2 times)"

func TestExplained_NamesThePanicAndOneStack(t *testing.T) {
	for name, tc := range map[string]struct {
		kind              abi.FailureKind
		err, output       string
		want, wantsOutput string
	}{
		"Go": {
			abi.FailureTrap, goNamelessTrace, goDump,
			"panic: cannot bear s-3 (reconcile.go:42)\n\tmain.(*thing).fail example.com/gop/reconcile.go:42\n\tmain.deep example.com/gop/reconcile.go:45", "deciding",
		},
		"Go, of the runtime": {
			abi.FailureTrap, goNamelessTrace,
			"panic: runtime error: index out of range [3] with length 1\n\ngoroutine 1 [running]:\nruntime.goPanicIndex(0x1)\n\truntime/panic.go:115\npanic({0x1})\n\truntime/panic.go:1\nmain.f()\n\tx/a%2eb/f.go:3 +0x1",
			"panic: runtime error: index out of range [3] with length 1 (f.go:3)\n\tmain.f x/a%2eb/f.go:3", "",
		},
		"Go, fatal":   {abi.FailureTrap, goNamelessTrace, "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select]:\nmain.f()\n\tx/f.go:3 +0x1", "panic: all goroutines are asleep - deadlock! (f.go:3)\n\tmain.f x/f.go:3", ""},
		"Go, lines":   {abi.FailureTrap, goNamelessTrace, "panic: one\n\ttwo\n\ngoroutine 1 [running]:\nmain.f()\n\tx/f.go:3 +0x1", "panic: one (f.go:3)\n\ttwo\n\tmain.f x/f.go:3", ""},
		"TinyGo":      {abi.FailureTrap, goNamelessTrace, "panic: cannot bear s-3\n", "panic: cannot bear s-3", ""},
		"TinyGo, nil": {abi.FailureTrap, goNamelessTrace, "panic: runtime error at 0x00001a2b: nil pointer dereference\n", "panic: nil pointer dereference", ""},
		"Rust":        {abi.FailureTrap, rustTrace, "panicked at src/reconcile.rs:45:9:\ncannot bear s-3\n", "panic: cannot bear s-3 (reconcile.rs:45)" + rustStack, ""},
		"Rust, WASI": {
			abi.FailureTrap, "exited with code 134", "a line\n\nthread '<unnamed>' (1) panicked at src/lib.rs:5:9:\nno luck\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
			"panic: no luck (lib.rs:5)", "a line",
		},
		"Rust 1.63":          {abi.FailureTrap, goNamelessTrace, "panicked at 'it's no luck', src/lib.rs:5:9\n", "panic: it's no luck (lib.rs:5)", ""},
		"no panic":           {abi.FailureTrap, goNamelessTrace, "so far\nso good", "wasm error: unreachable", "so far\nso good"},
		"names":              {abi.FailureTrap, rustTrace, "", "wasm error: unreachable" + rustStack, ""},
		"time, with a panic": {abi.FailureTimeout, "exceeded its time limit\nwasm stack trace:\n\t.$1()", "panic: x\n", "exceeded its time limit", ""},
		"memory":             {abi.FailureMemory, "exceeded its memory limit: " + goNamelessTrace, "fatal error: out of memory\n\ngoroutine 1 [running]:\nmain.f()\n\tx/f.go:3 +0x1", "exceeded its memory limit: wasm error: unreachable\n\tmain.f x/f.go:3", ""},
		"a word":             {abi.FailureTrap, goNamelessTrace, "don't panic: it is fine", "wasm error: unreachable", "don't panic: it is fine"},
		"overflow":           {abi.FailureTrap, "wasm error: out of bounds memory access\nwasm stack trace:\n\tx.wasm.main.f(i32) i32\n\tx.wasm.main.f(i32) i32", "", "wasm error: out of bounds memory access" + overflowHint + "\n\tmain.f (2 times)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cause := errors.New(tc.err)
			rest, _, err := explained(tc.kind, cause, tc.output)
			if diff := cmp.Diff([]string{tc.want, tc.wantsOutput}, []string{err.Error(), rest}); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(err, cause) {
				t.Error("the error itself is lost")
			}
		})
	}
}

func TestDemangle(t *testing.T) {
	for symbol, want := range map[string]string{
		"_ZN3rsp9reconcile4deep17h29687c4c9f18e51dE":                                              "rsp::reconcile::deep",
		"_ZN3std6thread5local17LocalKey$LT$T$GT$4with17h31bdc286d8212811E":                        "std::thread::local::LocalKey<T>::with",
		"_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE": "<alloc::string::String as core::fmt::Debug>::fmt",
		"_RNvNtCsebHcaeoSrxy_3std9panicking15panic_with_hook":                                     "std::panicking::panic_with_hook",
		"_RNvCsfLfy6EI15iL_7___rustc10rust_panic":                                                 "__rustc::rust_panic",
		"gopkg.in/yaml%2ev3.(*parser).parse":                                                      "gopkg.in/yaml.v3.(*parser).parse",
		"main.(*thing).fail":                                                                      "main.(*thing).fail",
		"_ZN9999shortE":                                                                           "_ZN9999shortE",
		"_ZN":                                                                                     "_ZN",
		"_R":                                                                                      "_R",
		"100%":                                                                                    "100%",
	} {
		if got := demangle(symbol); got != want {
			t.Errorf("%s: %q, want %q", symbol, got, want)
		}
	}
}

// FuzzExplained: a guest writes both texts.
func FuzzExplained(f *testing.F) {
	f.Add(goNamelessTrace, goDump)
	f.Add(rustTrace, "panicked at src/reconcile.rs:45:9:\ncannot bear s-3\n")
	f.Fuzz(func(t *testing.T, text, output string) {
		rest, _, err := explained(abi.FailureTrap, errors.New(text), output)
		if most := 2*(len(text)+len(output)) + 1<<10; len(err.Error())+len(rest) > most {
			t.Errorf("%d bytes of %d and %d", len(err.Error())+len(rest), len(text), len(output))
		}
		for line := range strings.Lines(output) {
			beginsPanic([]byte(line))
		}
	})
}
