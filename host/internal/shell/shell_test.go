// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Everything but the bodies of functions is as it was, each of those traps, and wazero
// takes the shell as it takes the module.
func TestOf_LeavesEverythingButTheBodies(t *testing.T) {
	for name, module := range map[string][]byte{"modes": wasm.Modes, "calls": wasm.Calls, "tables": wasm.Tables, "wasi": wasm.WASI, "empty": wasm.Empty} {
		got, err := Of(module)
		if err != nil {
			t.Fatal(err)
		}
		was, is := sections(t, module), sections(t, got)
		if len(was) != len(is) {
			t.Fatalf("%s: %d sections, want %d", name, len(is), len(was))
		}
		for i := range was {
			if was[i].ID != is[i].ID || was[i].Name != is[i].Name {
				t.Errorf("%s: section %d is %s, want %s", name, i, &is[i], &was[i])
			}
			if was[i].ID != binary.SectionCode && !bytes.Equal(was[i].Body.Rest(), is[i].Body.Rest()) {
				t.Errorf("%s: section %s has changed", name, &was[i])
			}
			if was[i].ID == binary.SectionCode {
				wantTraps(t, name, was[i].Body, is[i].Body)
			}
		}
		if _, err := wazero.NewRuntime(t.Context()).CompileModule(context.Background(), got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func sections(t *testing.T, module []byte) []binary.Section {
	t.Helper()
	s, err := binary.Sections(module)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantTraps(t *testing.T, name string, was, is binary.Reader) {
	t.Helper()
	n := is.Count()
	if n != was.Count() {
		t.Errorf("%s: another number of functions", name)
	}
	for range n {
		if b := is.Block(); !bytes.Equal(b.Rest(), body[1:]) {
			t.Errorf("%s: body % x", name, b.Rest())
		}
	}
	if err := is.End(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// What is no module is an error, and no panic.
func FuzzOf(f *testing.F) {
	f.Add(wasm.Modes)
	f.Add(wasm.Tables)
	f.Add([]byte(binary.Header))
	f.Fuzz(func(t *testing.T, module []byte) {
		if rest, data := Detach(module, 1<<16); data != nil && len(rest) >= len(module) {
			t.Errorf("%d bytes are left of %d", len(rest), len(module))
		}
		got, err := Of(module)
		if err == nil && len(got) > len(module)+5+4*len(module) {
			t.Errorf("%d bytes became %d", len(module), len(got))
		}
	})
}
