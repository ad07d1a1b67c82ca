// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// TestLoad_RefusesAManifestBeyondItsBounds: the problem names the list and its
// bound, for Load and for Inspect.
func TestLoad_RefusesAManifestBeyondItsBounds(t *testing.T) {
	watch := map[string]any{"group": "", "kind": "Secret", "map": "owner"}
	for want, manifest := range map[string]map[string]any{
		"capabilities[0].names: has 200000 entries, the limit is 200": {"capabilities": []any{map[string]any{
			"resource": "pods", "verbs": []any{"get"}, "names": slices.Repeat([]any{"x"}, 200_000), "namespaces": slices.Repeat([]any{"x"}, 200),
		}}},
		"watches: has 3000 entries, the limit is 50": {"watches": slices.Repeat([]any{watch}, 3000)},
	} {
		b, err := msgpack.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		module := withSection(wasm.Empty, abi.ManifestSection, b)
		var bad *load.InvalidError
		if _, err = Load(t.Context(), module, Config{}); !errors.As(err, &bad) || !strings.Contains(bad.Error(), want) {
			t.Errorf("Load: %v, want %s", err, want)
		}
		if p := load.Inspect(t.Context(), module).Problems; !strings.Contains(strings.Join(p, "; "), want) {
			t.Errorf("Inspect: %v, want %s", p, want)
		}
	}
}

// TestConcurrency_OfTheManifestIsBounded: an operator's number wins, and a
// manifest's is lowered, which is logged.
func TestConcurrency_OfTheManifestIsBounded(t *testing.T) {
	for _, c := range []struct {
		operator, manifest, want int
		logged                   bool
	}{
		{0, 0, DefaultConcurrency, false},
		{0, abi.MaxConcurrency, abi.MaxConcurrency, false},
		{0, abi.MaxConcurrency + 1, abi.MaxConcurrency, true},
		{0, 10_000, abi.MaxConcurrency, true},
		{200, 10_000, 200, false},
		{2, 8, 2, false},
		{8, 2, 8, false},
	} {
		var log bytes.Buffer
		m := loaded(t, withManifest(t, wasm.Empty, &abi.Manifest{Concurrency: c.manifest}), Config{Concurrency: c.operator, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if got := m.Concurrency(); got != c.want {
			t.Errorf("operator %d, manifest %d: %d, want %d", c.operator, c.manifest, got, c.want)
		}
		if want := fmt.Sprintf("asked=%d given=%d", c.manifest, c.want); strings.Contains(log.String(), want) != c.logged {
			t.Errorf("operator %d, manifest %d: log %q", c.operator, c.manifest, log.String())
		}
	}
}
