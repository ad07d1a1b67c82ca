// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// rule 21: a finalizer that nobody would carry out, or a finalize that nobody
// would call, is found when the module is loaded; so is a map that is not there.
func TestLoad_HooksAndManifestAgree(t *testing.T) {
	byFunc := []abi.Watch{{Kind: "Node", Map: abi.MapOwner}, {Kind: "Secret", Map: abi.MapFunc}}
	for _, tc := range []struct {
		name string
		wasm []byte
		want []string
	}{
		{"finalizer without finalize", withManifest(t, wasm.Empty, &abi.Manifest{Finalizer: "example.com/x"}), []string{
			`manifest: names the finalizer "example.com/x", but the module does not export "finalize"`,
		}},
		{"finalize that is not real", withManifest(t, wasm.Echo, &abi.Manifest{Finalizer: "example.com/x", Hooks: []string{"map"}}), []string{
			`manifest: names the finalizer "example.com/x", but does not name "finalize" in hooks`,
		}},
		{"finalize without finalizer", withManifest(t, wasm.Echo, &abi.Manifest{Name: "n"}), []string{
			`export[finalize]: never called because the manifest names no finalizer`,
		}},
		{"finalize without a manifest", wasm.Echo, []string{
			`export[finalize]: never called because the manifest names no finalizer`,
		}},
		{"func without map", withManifest(t, wasm.Empty, &abi.Manifest{Watches: byFunc}), []string{
			`manifest: watches[1] (Secret) has map "func", but the module does not export "map"`,
		}},
		{"map that is not real", withManifest(t, wasm.Echo, &abi.Manifest{Watches: byFunc, Hooks: []string{}}), []string{
			`manifest: watches[1] (Secret) has map "func", but does not name "map" in hooks`,
		}},
	} {
		var bad *load.InvalidError
		_, err := Load(t.Context(), tc.wasm, Config{})
		if !errors.As(err, &bad) {
			t.Errorf("%s: got %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, bad.Problems); diff != "" {
			t.Errorf("%s: Load: %s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.want, load.Inspect(t.Context(), tc.wasm).Problems); diff != "" {
			t.Errorf("%s: Inspect: %s", tc.name, diff)
		}
	}
}

func TestInfo_CanCall(t *testing.T) {
	for _, tc := range []struct {
		wasm []byte
		op   abi.Op
		want bool
	}{
		{wasm.Spy, abi.OpAPIGet, true},
		{wasm.Spy, abi.OpCacheGet, false},
		{wasm.Configure, abi.OpCacheGet, true},
		{wasm.Calls, abi.OpCacheList, true},
		{wasm.Empty, abi.OpConfigGet, false},
	} {
		if got := load.Inspect(t.Context(), tc.wasm).CanCall(tc.op); got != tc.want {
			t.Errorf("%s: got %v", tc.op, got)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1000: "1000", 65536: "64Ki", 3 << 20: "3Mi", 5 << 19: "2560Ki", 4 << 30: "4Gi", 4 << 40: "4096Gi"} {
		if got := share.SizeText(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
