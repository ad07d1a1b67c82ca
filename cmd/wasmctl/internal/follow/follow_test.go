// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// TestModule_SlowlyWrittenFileIsOneChange: a file that is written in pieces, with pauses, is swapped in
// when it is complete, and no part of it is refused. The file may be compressed.
func TestModule_SlowlyWrittenFileIsOneChange(t *testing.T) {
	cluster := devclustertest.Shared(t)
	rt, err := wasmctl.New(cluster.RESTConfig(), wasmctl.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), CacheDir: enginetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.wasm")
	write := func(wasm []byte) {
		t.Helper()
		if err := os.WriteFile(file, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(enginetest.Worse(enginetest.Good, 0))
	o := New(&v1alpha1.ControllerSpec{Module: v1alpha1.ModuleOf(file)}, &flags.Registry{}, func(s *v1alpha1.ControllerSpec, _ *flags.Files) wasmctl.ControllerOptions {
		o := wasmctl.ControllerOptions{ControllerSpec: *s}
		o.For, o.Namespaces = v1alpha1.KindOf("configmaps"), []string{devclustertest.Namespace(t, cluster)}
		return o
	})
	o.rest = time.Hour // the machine may be busy
	if o.Controller, err = rt.Ensure("m", o.Source); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := rt.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { o.Run(ctx) })
	defer wg.Wait()
	defer stop()
	if err := o.Controller.Started(ctx); err != nil {
		t.Fatal(err)
	}
	status := func() admin.Controller { return rt.Admin().Status().Controllers[0] }
	for i, compress := range []bool{false, true} {
		wasm := enginetest.Worse(enginetest.Good, i+1)
		whole := wasm
		if compress {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write(wasm); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			whole = b.Bytes()
		}
		for pieces := 1; pieces <= 4; pieces++ {
			write(whole[:len(whole)*pieces/4])
			<-time.After(500 * time.Millisecond) // longer than the watch waits for further writes
		}
		enginetest.Until(t, "the whole module is live", func() bool { return status().Digest == load.DigestOf(wasm) })
	}
	for _, r := range status().Revisions {
		if r.State == "refused" {
			t.Errorf("%+v", r)
		}
	}
}
