// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// codeOf returns what a tenant is charged for code.
func codeOf(b *share.Budget, tenant string) int64 {
	for _, u := range b.Usage() {
		if u.Tenant == tenant {
			return u.Kinds["code"]
		}
	}
	return 0
}

// The code of modules with the same bytes is charged once, to the tenant that has used it
// longest. If that tenant leaves, the next one is charged.
func TestCodes_AreChargedOnce(t *testing.T) {
	inThisProcess(t)
	b, codes := share.NewBudget(64<<20, 0), &Codes{}
	load := func(tenant string) *Module {
		return loaded(t, large(0), Config{Name: tenant, Process: Process{Budget: b, Tenant: tenant, Codes: codes}})
	}
	first, second := load("a"), load("b")
	charged := codeOf(b, "a")
	if charged < int64(len(large(0)))/10 || codeOf(b, "b") != 0 {
		t.Errorf("a is charged %d bytes, b %d", charged, codeOf(b, "b"))
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if codeOf(b, "a") != 0 || codeOf(b, "b") != charged {
		t.Errorf("after a has left: a is charged %d bytes, b %d", codeOf(b, "a"), codeOf(b, "b"))
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	used(t, b, 0)
}

// A tenant without memory for the code of a module is refused, and nothing remains.
func TestCodes_ThatDoNotFitAreRefused(t *testing.T) {
	b := share.NewBudget(256<<10, 0)
	_, err := Load(t.Context(), wasm.Empty, Config{Name: "m", Process: Process{Budget: b, Tenant: "a", Codes: &Codes{}}})
	if !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("got %v", err)
	}
	used(t, b, 0)
}

// Bytes of a module that nothing reads cost no memory: custom sections, whatever their length.
func TestLoad_CustomSectionsAreNotKept(t *testing.T) {
	inThisProcess(t)
	const size = 32 << 20
	module := binary.AppendSection(bytes.Clone(wasm.Empty), binary.SectionCustom, append(binary.AppendName(nil, "pad"), make([]byte, size)...))
	at := allocated()
	m := loaded(t, module, Config{Name: "m"})
	if n := allocated() - at; n > size/2 {
		t.Errorf("loading has allocated %d bytes", n)
	}
	runtime.KeepAlive(m)
}

// The entries of element segments are bounded: an instance has 8 bytes for each, and a byte of
// the module names one.
func TestLoad_ElementsAreBounded(t *testing.T) {
	const most = 2 << 17
	for n, refused := range map[int]bool{most: false, most + 1: true} {
		segment := append(binary.AppendU32([]byte{1, 1, 0}, uint32(n)), make([]byte, n)...) //nolint:gosec // small
		code := bytes.Index(wasm.Empty, []byte{binary.SectionCode, 0x35})
		if code < 0 {
			t.Fatal("there is no code section")
		}
		module := append(binary.AppendSection(bytes.Clone(wasm.Empty[:code]), binary.SectionElement, segment), wasm.Empty[code:]...)
		m, err := Load(t.Context(), module, Config{Name: "m"})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "entries together") {
			t.Errorf("%d entries: %v", n, err)
		}
		if err == nil {
			_ = m.Close(t.Context()) // nothing runs
		}
	}
}
