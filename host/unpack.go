package host

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// gzipMagic is what compressed files begin with, and no module does.
const gzipMagic = "\x1f\x8b"

// Unpack returns the bytes of a module, which may be compressed with gzip: a
// ConfigMap holds no more than 1 MiB. It reads no more than a module may have.
func Unpack(content []byte) ([]byte, error) {
	if !bytes.HasPrefix(content, []byte(gzipMagic)) {
		return content, nil
	}
	var wasm bytes.Buffer
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err == nil {
		_, err = io.Copy(&wasm, io.LimitReader(r, DefaultMaxModuleSize+1))
	}
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if wasm.Len() > DefaultMaxModuleSize {
		return nil, fmt.Errorf("unpack: more than the %s that a module may have", sizeText(DefaultMaxModuleSize))
	}
	return wasm.Bytes(), nil
}
