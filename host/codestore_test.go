// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// A module whose code comes from the cache does what one does that was just compiled:
// results, traps, and what is said of them.
func TestLoad_FromTheCacheIsAsCompiled(t *testing.T) {
	inThisProcess(t)
	for name, module := range map[string][]byte{"modes": wasm.Modes, "tables": wasm.Tables, "init": wasm.Init} {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		compiled := Config{Logger: logger}
		kept := Config{Code: load.Options{CacheDir: t.TempDir()}, Logger: logger}
		want := outcomes(t, module, compiled)
		for range 2 { // compiles, takes from the cache
			log.Reset()
			if diff := cmp.Diff(want, outcomes(t, module, kept)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if strings.Contains(log.String(), "cache") {
				t.Errorf("%s: %s", name, &log)
			}
		}
		if paths := cacheEntries(t, kept.Code.CacheDir); len(paths) != 1 {
			t.Errorf("%s: entries %q", name, paths)
		}
	}
}

// What a manifest says and which files a module has is no part of its code: that is
// compiled once, and each module still has its own.
func TestLoad_CodeIsTheSameWhateverTheManifestSays(t *testing.T) {
	inThisProcess(t)
	cfg := Config{Code: load.Options{CacheDir: t.TempDir()}, API: apiOf(nil)}
	var digests []string
	for _, name := range []string{"one", "three"} {
		module, err := load.WithFiles(wasm.Modes, map[string][]byte{"/name": []byte(name)})
		if err == nil {
			module, err = load.WithManifest(module, &abi.Manifest{Version: "1", Name: name})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range [][]byte{module, withSection(module, "x", nil)} {
			info := loaded(t, m, cfg).Info()
			if info.Digest != load.DigestOf(m) || info.Manifest.Name != name || len(info.Files) != 1 || info.Files[0].Size != int64(len(name)) {
				t.Errorf("%s: digest %s, manifest of %q, files %v", name, info.Digest, info.Manifest.Name, info.Files)
			}
			digests = append(digests, info.Digest)
		}
	}
	slices.Sort(digests)
	if n := len(slices.Compact(digests)); n != 4 {
		t.Errorf("%d modules, want 4", n)
	}
	if paths := cacheEntries(t, cfg.Code.CacheDir); len(paths) != 2 { // without that section, and with it
		t.Errorf("entries %q", paths)
	}
}

// outcomes are what a module answers to each mode.
func outcomes(t *testing.T, module []byte, cfg Config) (out []string) {
	t.Helper()
	cfg.API = apiOf(nil)
	m := loaded(t, module, cfg)
	for mode := range byte(16) {
		if mode == 2 { // spins
			continue
		}
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		res, err := g.Reconcile(t.Context(), request(mode))
		release()
		if err != nil {
			out = append(out, err.Error()+callError(t, err).Output)
		} else {
			out = append(out, strings.TrimSpace(cmp.Diff(nil, res)))
		}
	}
	return out
}
