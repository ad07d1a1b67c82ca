// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// zeros is a reader of nothing else.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func zipped(t *testing.T, r io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A module is the same compressed, and no file is more than a module may have: a
// small one that unpacks to gigabytes is not read to its end.
func TestUnpack_IsBounded(t *testing.T) {
	whole := zipped(t, bytes.NewReader(wasm.Modes))
	for _, content := range [][]byte{wasm.Modes, whole} {
		if got, err := load.Unpack(content); err != nil || !bytes.Equal(got, wasm.Modes) {
			t.Errorf("%d bytes: got %d, %v", len(content), len(got), err)
		}
	}
	for n := 2; n < len(whole); n++ {
		if _, err := load.Unpack(whole[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for all", n)
		}
	}
	// What follows the limit is not read.
	bomb := append(zipped(t, io.LimitReader(zeros{}, load.MaxModuleSize+1<<20)), "no gzip"...)
	if _, err := load.Unpack(bomb); err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Errorf("a bomb: %v", err)
	}
}
