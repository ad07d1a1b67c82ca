// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/strictjson"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Media types of the CNCF's layout for WebAssembly, which Push writes.
const (
	ConfigType = "application/vnd.wasm.config.v0+json"
	LayerType  = "application/wasm"
)

// layerTypes are the types that Pull accepts: the layout's, and an older one.
var layerTypes = []string{LayerType, "application/vnd.wasm.content.layer.v1+wasm", "application/vnd.module.wasm.content.layer.v1+wasm"}

// Annotations that Describe sets. They are for searches: only the module's own section is
// authoritative.
const (
	AnnotationABI  = "dev.wasmctl.abi"
	AnnotationName = "dev.wasmctl.name"
	AnnotationFor  = "dev.wasmctl.for"
)

// Describe returns the annotations of a module.
func Describe(major int, m *abi.Manifest) map[string]string {
	out := map[string]string{}
	set := func(key, value string) {
		if value != "" && !strings.ContainsAny(value, "\r\n") { // registries refuse these
			out[key] = value
		}
	}
	if major > 0 {
		set(AnnotationABI, strconv.Itoa(major))
	}
	if m != nil {
		set(AnnotationName, m.Name)
		if m.For != nil {
			set(AnnotationFor, strings.TrimPrefix(m.For.Group+"/"+m.For.Version+"/"+m.For.Kind, "/"))
		}
	}
	return out
}

// blob is content with its descriptor.
type blob struct {
	ocispec.Descriptor

	content []byte
}

func newBlob(mediaType string, content []byte) blob {
	return blob{ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}, content}
}

// packed is a module in the form of a registry.
type packed struct{ manifest, config, layer blob }

// pack creates the artifact of a module. The same arguments give the same bytes.
func pack(wasm []byte, image bool, created time.Time, annotations map[string]string) packed {
	p := packed{layer: newBlob(LayerType, wasm)}
	at := created.UTC().Format(time.RFC3339)
	fields := map[string]any{"architecture": "wasm", "os": "wasip1", "created": at}
	configType := ConfigType
	if image {
		configType = ocispec.MediaTypeImageConfig
		fields["rootfs"] = ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{p.layer.Digest}}
	} else {
		fields["layerDigests"] = []digest.Digest{p.layer.Digest}
	}
	p.config = newBlob(configType, encode(fields))
	if len(annotations) == 0 {
		annotations = nil
	}
	p.manifest = newBlob(ocispec.MediaTypeImageManifest, encode(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: p.config.Descriptor, Layers: []ocispec.Descriptor{p.layer.Descriptor}, Annotations: maps.Clone(annotations),
	}))
	return p
}

func encode(v any) []byte {
	b, err := json.Marshal(v) // keys of maps are sorted
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err)) // it has only strings and numbers
	}
	return b
}

// read is the content of a manifest.
type read struct {
	index       *ocispec.Descriptor // the manifest to read instead, if this is an index
	layer       ocispec.Descriptor
	annotations map[string]string
}

// readManifest finds the module in a manifest, or its manifest in an index. It refuses anything but
// exactly one module, and modules that are too large.
func readManifest(mediaType string, content []byte, most int64) (read, error) {
	var m struct {
		ocispec.Manifest

		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	if err := strictjson.Unmarshal(content, &m); err != nil {
		return read{}, fmt.Errorf("manifest: %w", err)
	}
	mediaType = cmp.Or(m.MediaType, mediaType)
	isIndex := strings.Contains(mediaType, "index") || strings.Contains(mediaType, "manifest.list")
	switch {
	case m.Manifests != nil && len(m.Layers) > 0 || isIndex && len(m.Layers) > 0: // readers would disagree about its meaning
		return read{}, fmt.Errorf("the manifest is ambiguous: it has layers and is an index")
	case isIndex || m.Manifests != nil:
		return readIndex(m.Manifests)
	case len(m.Layers) != 1:
		return read{}, fmt.Errorf("it has %s, and a module is exactly one", humanize.Plural(len(m.Layers), "layer"))
	}
	layer := m.Layers[0]
	if err := checkDescriptor(layer, most); err != nil {
		return read{}, fmt.Errorf("layer: %w", err)
	}
	if !slices.Contains(layerTypes, layer.MediaType) {
		return read{}, fmt.Errorf("its layer is of type %q, and no module: want %s, neither in a tar nor compressed", layer.MediaType, LayerType)
	}
	return read{layer: layer, annotations: m.Annotations}, nil
}

// readIndex finds the only manifest of a module.
func readIndex(list []ocispec.Descriptor) (read, error) {
	var found []ocispec.Descriptor
	for _, d := range list {
		if d.Platform != nil && d.Platform.Architecture == "wasm" {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return read{}, fmt.Errorf("it is an index with %s of architecture wasm, and must have exactly one: name a manifest by its digest",
			humanize.Plural(len(found), "manifest"))
	}
	if err := checkDescriptor(found[0], maxManifest); err != nil {
		return read{}, fmt.Errorf("manifest: %w", err)
	}
	return read{index: &found[0]}, nil
}

// checkDescriptor checks the claims of a descriptor before any content is read.
func checkDescriptor(d ocispec.Descriptor, most int64) error {
	switch {
	case !digestForm.MatchString(string(d.Digest)):
		return fmt.Errorf("digest %q: want one of sha256", d.Digest)
	case d.Size <= 0:
		return fmt.Errorf("a size of %d bytes is none", d.Size)
	case d.Size > most:
		return fmt.Errorf("its %s are more than it may have (%s)", humanize.Bytes(d.Size), humanize.Bytes(most))
	}
	return nil
}

// checkWasm describes bytes that are not a module.
func checkWasm(b []byte) error {
	switch {
	case bytes.HasPrefix(b, []byte("\x00asm")):
		return nil
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		return fmt.Errorf("its layer is compressed with gzip: push the module itself")
	case len(b) > 262 && string(b[257:262]) == "ustar":
		return fmt.Errorf("its layer is a tar archive: push the module itself")
	}
	return fmt.Errorf("its layer is no WebAssembly module")
}
