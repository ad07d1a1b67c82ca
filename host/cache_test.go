// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/load"
)

// cacheEntries lists the files of a cache directory.
func cacheEntries(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// Code that somebody else has put into the cache is not run: it is counted, said
// once, and compiled again.
func TestLoad_ForgedCodeIsIgnored(t *testing.T) {
	for name, out := range map[string]bool{"in this process": false, "out of process": true} {
		t.Run(name, func(t *testing.T) {
			if !out {
				inThisProcess(t)
			}
			var log bytes.Buffer
			forged, compiled := 0, 0
			cfg := Config{
				Code:   load.Options{CacheDir: t.TempDir(), CacheKey: []byte("mine"), OnForged: func() { forged++ }},
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}
			if out {
				cfg.Code.Compiler = func(ctx context.Context, job load.Compilation) error {
					compiled++
					return job.Run(ctx)
				}
			}
			use := func() {
				t.Helper()
				m, err := Load(t.Context(), large(1), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if g := acquire(t, m); g == nil {
					t.Fatal("no guest")
				}
			}
			use()
			use()
			if forged != 0 || out && compiled != 1 || log.Len() > 0 {
				t.Fatalf("%d forged, %d times compiled: %s", forged, compiled, &log)
			}
			others := cfg
			others.Code.CacheKey, others.Code.OnForged, others.Logger = []byte("another's"), nil, nil
			if _, err := Load(t.Context(), large(1), others); err != nil { // replaces the entry
				t.Fatal(err)
			}
			use()
			paths := cacheEntries(t, cfg.Code.CacheDir)
			if len(paths) != 1 {
				t.Fatalf("entries: %q", paths)
			}
			code, err := os.ReadFile(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			code[len(code)/2] ^= 1
			if err := os.WriteFile(paths[0], code, 0o600); err != nil {
				t.Fatal(err)
			}
			use()
			if want := 2; forged != want || strings.Count(log.String(), "does not authenticate") != want {
				t.Errorf("%d forged, want %d: %s", forged, want, &log)
			}
			log.Reset()
			use()
			if forged != 2 || log.Len() > 0 || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it was not kept again: %s", &log)
			}
		})
	}
}
