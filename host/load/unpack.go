// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/wasmctl/wasmctl/host/share"
)

// gzipMagic is the beginning of compressed files, and of no module.
const gzipMagic = "\x1f\x8b"

// Unpack returns the bytes of a module, which may be compressed with gzip, because a ConfigMap
// holds at most 1 MiB. It reads no more than a module may have.
func Unpack(content []byte) ([]byte, error) {
	if !bytes.HasPrefix(content, []byte(gzipMagic)) {
		return content, nil
	}
	var wasm bytes.Buffer
	if err := UnpackTo(&wasm, content); err != nil {
		return nil, err
	}
	return wasm.Bytes(), nil
}

// UnpackTo is like Unpack, but writes the bytes.
func UnpackTo(w io.Writer, content []byte) error {
	if !bytes.HasPrefix(content, []byte(gzipMagic)) {
		_, err := w.Write(content)
		return err
	}
	var n int64
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err == nil {
		n, err = io.Copy(w, io.LimitReader(r, MaxModuleSize+1))
	}
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if n > MaxModuleSize {
		return fmt.Errorf("unpack: more than the %s that a module may have", share.SizeText(MaxModuleSize))
	}
	return nil
}
