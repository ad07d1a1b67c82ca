package host

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
)

// WithManifest returns a copy of a module whose manifest section holds m;
// sections of that name that were there are left out. Everything else stays
// byte for byte. The same module and manifest give the same bytes.
func WithManifest(wasm []byte, m *abi.Manifest) ([]byte, error) {
	sections, err := binary.Sections(wasm)
	if err != nil {
		return nil, invalid("manifest", err)
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	msg, err := abi.EncodeManifest(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	out := append(make([]byte, 0, len(wasm)+len(msg)+64), binary.Header...)
	for _, s := range sections {
		if s.ID != binary.SectionCustom || s.Name != abi.ManifestSection {
			out = append(out, wasm[s.Start:s.End]...)
		}
	}
	return binary.AppendSection(out, binary.SectionCustom, append(binary.AppendName(nil, abi.ManifestSection), msg...)), nil
}
