// SPDX-License-Identifier: Apache-2.0

package load

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"testing"

	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// formDigest is the hash of the forms of some modules. Who changes what is compiled
// changes it and formVersion both, so that code of another form is never taken from a
// cache.
const formDigest = "3875918b1d47f5e9"

func TestForm_ANewFormHasANewVersion(t *testing.T) {
	h := sha256.New()
	for _, module := range [][]byte{wasm.Modes, wasm.Calls, wasm.Tables, wasm.WASI, wasm.Worse, wasm.Floods, wasm.Work, wasm.Init} {
		bin, err := parseModule(module)
		if err != nil {
			t.Fatal(err)
		}
		c := Compiler{Log: slog.New(slog.DiscardHandler)}
		src := &source{Module: bin}
		if err := c.form(&Code{Info: newInfo(bin), StartSize: bin.memory().Min}, src); err != nil {
			t.Fatal(err)
		}
		h.Write(src.form)
		h.Write(src.data)
	}
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != formDigest {
		t.Errorf("the form of modules has changed: set formVersion to %d and formDigest to %q", formVersion+1, got)
	}
}
