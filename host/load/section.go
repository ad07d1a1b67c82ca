// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
)

// WithManifest returns a copy of a module with these manifests in place of its own: one, or
// one for each of several controllers, which need different names. Everything else stays
// byte for byte. The same module and manifests give the same bytes.
func WithManifest(wasm []byte, manifests ...*abi.Manifest) ([]byte, error) {
	payloads := make([][]byte, len(manifests))
	for i, m := range manifests {
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		var err error
		if payloads[i], err = abi.EncodeManifest(m); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
	}
	if problem := checkManifestNames(manifests); problem != "" {
		return nil, errors.New(problem)
	}
	return replaceSections(wasm, abi.ManifestSection, payloads...)
}

// WithFiles is WithManifest for the files that the module's guests can read, by their paths,
// such as "/etc/app/config.yaml".
func WithFiles(wasm []byte, files map[string][]byte) ([]byte, error) {
	payload := binary.AppendU32(nil, uint32(len(files))) //nolint:gosec // few
	for _, path := range slices.Sorted(maps.Keys(files)) {
		payload = binary.AppendName(payload, strings.TrimPrefix(path, "/"))
		payload = binary.AppendName(payload, files[path])
	}
	r := binary.NewReader(payload, 0)
	if (&Module{}).parseFiles(&r); !r.OK() {
		return nil, fmt.Errorf("files: %w", errors.Unwrap(r.Err()))
	}
	return replaceSections(wasm, abi.FilesSection, payload)
}

// replaceSections returns a copy of a module with these payloads in place of all custom
// sections of a name.
func replaceSections(wasm []byte, name string, payloads ...[]byte) ([]byte, error) {
	sections, err := binary.Sections(wasm)
	if err != nil {
		return nil, Invalid(name, err)
	}
	out := append(make([]byte, 0, len(wasm)), binary.Header...)
	for _, s := range sections {
		if s.ID != binary.SectionCustom || s.Name != name {
			out = append(out, wasm[s.Start:s.End]...)
		}
	}
	for _, payload := range payloads {
		out = binary.AppendSection(out, binary.SectionCustom, append(binary.AppendName(nil, name), payload...))
	}
	return out, nil
}

// ownSection reports whether a section is for the host, and not part of the code.
func ownSection(s *binary.Section) bool {
	return s.ID == binary.SectionCustom && (s.Name == abi.ManifestSection || s.Name == abi.FilesSection)
}

// parseFiles reads the section with the files.
func (m *Module) parseFiles(r *binary.Reader) {
	if m.fileList != nil {
		r.Failf("found two, expected one at most")
		return
	}
	if r.Left() > abi.MaxFiles {
		r.Failf("has %d bytes, the limit is %d", r.Left(), abi.MaxFiles)
		return
	}
	files := map[string][]byte{}
	m.fileList = []Section{}
	r.Each(func(r *binary.Reader) {
		path, content := r.Name(), r.Block()
		if _, twice := files[path]; twice {
			r.Failf("file[%s]: appears twice", path)
		}
		files[path] = bytes.Clone(content.Rest()) // a slice would keep the whole module in memory
		m.fileList = append(m.fileList, Section{Name: "/" + path, Size: int64(content.Left())})
	})
	var err error
	if m.files, err = wasi.NewFiles(files); err != nil {
		r.Fail(err)
	}
}
