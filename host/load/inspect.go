// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/share"
)

// Info describes a module by its bytes, without running any of it.
type Info struct {
	// Digest is "sha256:" and the hash of the bytes in hexadecimal.
	Digest string `json:"digest"`
	// Size is the number of bytes.
	Size int64 `json:"size"`
	// ABI is the newest major version of the reconciler ABI that the module
	// declares; 0 is none.
	ABI int `json:"abi"`
	// Toolchain is what built the module, if the module names or shows it.
	Toolchain string `json:"toolchain,omitempty"`
	// Exports and Imports are in the order of the module.
	Exports []Export `json:"exports"`
	Imports []Import `json:"imports"`
	// Memory is nil if the module has none.
	Memory *Memory `json:"memory,omitempty"`
	// Manifest is the content of the manifest section. It is nil if there is no section, if
	// it cannot be read, or if there are several.
	Manifest *abi.Manifest `json:"manifest,omitempty"`
	// Controllers are the manifests of a module with several controllers, if it is not known
	// as which of them it runs.
	Controllers []*abi.Manifest `json:"controllers,omitempty"`
	// UnknownKeys are keys of the manifest that this host does not know.
	UnknownKeys []string  `json:"unknownKeys,omitempty"`
	Sections    []Section `json:"sections"`
	// Files are the files that guests can read, by their paths.
	Files []Section `json:"files,omitempty"`
	// Problems are the reasons why Load would refuse the module.
	Problems []string `json:"problems,omitempty"`
}

// CanCall reports whether the module may use an operation, because it imports it.
func (i *Info) CanCall(op abi.Op) bool {
	return slices.ContainsFunc(i.Imports, func(imp Import) bool {
		return imp.Module == abi.ImportModule && imp.Name == string(op)
	})
}

// Manifests returns the manifests in the module, or only that of the controller as which it
// runs, if this is known.
func (i *Info) Manifests() []*abi.Manifest {
	if i.Manifest != nil {
		return []*abi.Manifest{i.Manifest}
	}
	return i.Controllers
}

// Choose sets Manifest to that of a controller, if the module has several and this is one.
func (i *Info) Choose(controller string) {
	for _, m := range i.Controllers {
		if m.Name == controller {
			i.Manifest = m
		}
	}
}

// HasExport reports whether the module exports something under a name.
func (i *Info) HasExport(name string) bool {
	return slices.ContainsFunc(i.Exports, func(e Export) bool { return e.Name == name })
}

// Export is one thing that a module exports.
type Export struct {
	Name string `json:"name"`
	// Kind is function, table, memory, global or tag.
	Kind string `json:"kind"`
	// Type is, for a function, for example "(i32, i32) -> (i64)".
	Type string `json:"type,omitempty"`
}

// Import is one thing that a module imports; see Export.
type Import struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Type   string `json:"type,omitempty"`
}

// Memory is the size of a module's linear memory, in bytes. Max is 0 if the module sets none.
type Memory struct {
	Min int64 `json:"min"`
	Max int64 `json:"max,omitempty"`
}

// Section is one section or file of a module; Size is that of its content, in bytes.
type Section struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Inspect describes a module. Info.Problems are the reasons why it could not be loaded with
// the limits that it requests. Inspect runs nothing of the module, and never fails: for
// bytes that are not a module, it returns a problem and little else.
func Inspect(ctx context.Context, wasm []byte) *Info {
	info, readable := outline(wasm)
	if !readable {
		return info
	}
	if err := validate(ctx, wasm); err != nil {
		info.Problems = ShortProblems(append(info.Problems, err.Error()))
	}
	return info
}

// Outline is Inspect without a check of the functions' code, which takes most of the time.
// It is for callers that load the module next.
func Outline(wasm []byte) *Info {
	info, _ := outline(wasm)
	return info
}

// outline also reports whether all sections could be read.
func outline(wasm []byte) (info *Info, readable bool) {
	bin, err := parseModule(wasm)
	info = newInfo(bin)
	if err != nil {
		info.Problems = ShortProblems(append(info.Problems, err.Error()))
		return info, false
	}
	limits, _ := share.Limits{}.For(info.Manifest)
	info.Problems = bin.problems(limits.Memory)
	info.Problems = append(info.Problems, bin.manifestProblems(Capabilities(true))...)
	info.Problems = ShortProblems(info.Problems)
	return info, true
}

// DigestOf returns the digest of a module's bytes: "sha256:" and their hash in
// hexadecimal.
func DigestOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// digests are hashes of a module.
type digests struct{ all, code string }

// Digest is DigestOf of the module's bytes.
func (m *Module) Digest() string { return m.hash().all }

// CodeDigest is the hash of all sections except those for the host: it names the code. So
// the code is the same whatever the manifest says, and whatever files there are.
func (m *Module) CodeDigest() string { return m.hash().code }

// hash works out both digests, once. The sections for the host are usually the last ones:
// then nothing is hashed twice.
func (m *Module) hash() *digests {
	if m.digests != nil {
		return m.digests
	}
	first := len(m.wasm)
	for i := range m.sections {
		if ownSection(&m.sections[i]) {
			first = min(first, m.sections[i].Start)
		}
	}
	all, code := sha256.New(), sha256.New()
	all.Write(m.wasm[:first])
	code.Write(all.Sum(nil))
	all.Write(m.wasm[first:])
	for i := range m.sections {
		if s := &m.sections[i]; s.Start > first && !ownSection(s) {
			code.Write(m.wasm[s.Start:s.End])
		}
	}
	m.digests = &digests{"sha256:" + hex.EncodeToString(all.Sum(nil)), hex.EncodeToString(code.Sum(nil))}
	return m.digests
}

func newInfo(bin *Module) *Info {
	info := &Info{
		Digest:    bin.Digest(),
		Size:      int64(len(bin.wasm)),
		Toolchain: bin.toolchain(),
		Exports:   make([]Export, 0, len(bin.exports)),
		Imports:   make([]Import, 0, len(bin.imports)),
		Sections:  make([]Section, 0, len(bin.sections)),
	}
	if v := bin.abiVersions(); len(v) > 0 {
		info.ABI = v[0]
	}
	for _, e := range bin.exports {
		info.Exports = append(info.Exports, Export{Name: e.name, Kind: kindNames[e.kind], Type: typeText(e.kind, e.typ)})
	}
	for _, i := range bin.imports {
		info.Imports = append(info.Imports, Import{Module: i.module, Name: i.name, Kind: kindNames[i.kind], Type: typeText(i.kind, i.typ)})
	}
	info.Memory, info.Files = bin.memory(), bin.fileList
	for _, s := range bin.sections {
		info.Sections = append(info.Sections, Section{Name: s.String(), Size: int64(len(s.Body.Rest()))})
	}
	info.Manifest, info.UnknownKeys, _ = bin.Manifest()
	if all, _, _ := bin.manifests(); info.Manifest == nil && len(all) > 1 {
		info.Controllers = all
	}
	return info
}

func typeText(kind byte, t abi.FuncType) string {
	if kind != binary.KindFunc {
		return ""
	}
	return t.String()
}

// toolchain reads the producers section, a convention of tools: fields
// (language, processed-by, sdk) of names and versions.
func (m *Module) toolchain() string {
	otherwise := ""
	for _, s := range m.sections {
		switch {
		case s.ID != binary.SectionCustom:
		case s.Name == "producers":
			if t := producers(s.Body); t != "" {
				return t
			}
		case s.Name == "go:buildid":
			otherwise = "Go"
		}
	}
	return otherwise
}

func producers(r binary.Reader) string {
	var tools []tool
	r.Each(func(r *binary.Reader) {
		r.Name() // language, processed-by or sdk
		r.Each(func(r *binary.Reader) { tools = append(tools, tool{r.Name(), r.Name()}) })
	})
	if !r.OK() {
		return ""
	}
	return toolText(tools)
}

// tool is one entry of the producers section.
type tool struct{ name, version string }

// toolText names tools for people. Go's toolchain appears as a language and as a compiler
// of the same version, whose name begins with that of the language.
func toolText(tools []tool) string {
	var names []string
	for i, t := range tools {
		same := func(u tool) bool { return u.version == t.version && strings.HasPrefix(t.name, u.name+" ") }
		if slices.ContainsFunc(tools[:i], same) {
			continue
		}
		version := strings.TrimPrefix(t.version, strings.ToLower(t.name))
		names = append(names, strings.TrimSpace(t.name+" "+version))
	}
	return strings.Join(names, ", ")
}
