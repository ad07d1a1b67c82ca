package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
)

// Info is what a module's bytes say of it, without running any of it.
type Info struct {
	// Digest is "sha256:" and the hash of the bytes in hexadecimal.
	Digest string `json:"digest"`
	// Size is the number of bytes.
	Size int64 `json:"size"`
	// ABI is the newest major version of the reconciler ABI that the module
	// declares; 0 is none.
	ABI int `json:"abi"`
	// Toolchain is what built the module, as far as it says or shows; may be
	// empty.
	Toolchain string `json:"toolchain,omitempty"`
	// Exports and Imports are in the order of the module.
	Exports []Export `json:"exports"`
	Imports []Import `json:"imports"`
	// Memory is nil where the module has none.
	Memory *Memory `json:"memory,omitempty"`
	// Manifest is that of the manifest section; nil where there is none, or
	// none that can be read, or there are several.
	Manifest *abi.Manifest `json:"manifest,omitempty"`
	// Controllers are the manifests of a module with several controllers, where it is not
	// known as which of them it runs.
	Controllers []*abi.Manifest `json:"controllers,omitempty"`
	// UnknownKeys are keys of the manifest that this host does not know.
	UnknownKeys []string  `json:"unknownKeys,omitempty"`
	Sections    []Section `json:"sections"`
	// Files are what guests read, by their paths.
	Files []Section `json:"files,omitempty"`
	// Problems holds every reason found why Load would refuse the module.
	Problems []string `json:"problems,omitempty"`
}

// CanCall reports whether the module may use an operation: it imports it by its
// name, or call, which does any by number.
func (i *Info) CanCall(op abi.Op) bool {
	return slices.ContainsFunc(i.Imports, func(imp Import) bool {
		return imp.Module == abi.ImportModule && (imp.Name == string(op) || imp.Name == abi.FuncCall)
	})
}

// Manifests are those that are in the module: that of the controller as which it runs, if
// that is known.
func (i *Info) Manifests() []*abi.Manifest {
	if i.Manifest != nil {
		return []*abi.Manifest{i.Manifest}
	}
	return i.Controllers
}

// Choose makes the manifest that of a controller, if the module has several and this is one.
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

// Memory is the size of a module's linear memory, in bytes. Max is 0 where the
// module sets none.
type Memory struct {
	Min int64 `json:"min"`
	Max int64 `json:"max,omitempty"`
}

// Section is one section or file of a module; Size is that of its content, in bytes.
type Section struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Inspect describes a module and says in Info.Problems why it could not be
// loaded with the limits that it asks for. It runs nothing of the module, and
// never fails: bytes that are no module at all have a problem and little else.
func Inspect(ctx context.Context, wasm []byte) *Info {
	info, whole := outline(wasm)
	if !whole {
		return info
	}
	if err := validate(ctx, wasm); err != nil {
		info.Problems = shortProblems(append(info.Problems, err.Error()))
	}
	return info
}

// Outline is Inspect without what the code of the functions says, which takes most of
// the time: it is for who loads the module next.
func Outline(wasm []byte) *Info {
	info, _ := outline(wasm)
	return info
}

// outline reports too whether all sections could be read.
func outline(wasm []byte) (info *Info, whole bool) {
	bin, err := parseModule(wasm)
	info = newInfo(wasm, bin)
	if err != nil {
		info.Problems = shortProblems(append(info.Problems, err.Error()))
		return info, false
	}
	info.Problems = bin.problems(Config{}.LimitsFor(info.Manifest).Memory)
	info.Problems = append(info.Problems, bin.manifestProblems(capNames(true))...)
	info.Problems = shortProblems(info.Problems)
	return info, true
}

// DigestOf returns the digest of a module's bytes: "sha256:" and their hash in
// hexadecimal.
func DigestOf(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// digestOf is DigestOf of the bytes that were parsed. It is worked out once, with the
// digest of the code.
func (m *binaryModule) digestOf(wasm []byte) string {
	if m.digest == "" {
		m.hash(wasm)
	}
	return m.digest
}

// codeDigestOf is the hash of all sections but those for the host: it names what is
// compiled. So the code is the same whatever the manifest says, and which files there are.
func (m *binaryModule) codeDigestOf(wasm []byte) string {
	if m.codeDigest == "" {
		m.hash(wasm)
	}
	return m.codeDigest
}

// hash works out both digests. What is for the host is behind all else, as a rule: then
// nothing is hashed twice.
func (m *binaryModule) hash(wasm []byte) {
	first := len(wasm)
	for i := range m.sections {
		if ownSection(&m.sections[i]) {
			first = min(first, m.sections[i].Start)
		}
	}
	whole, code := sha256.New(), sha256.New()
	whole.Write(wasm[:first])
	code.Write(whole.Sum(nil))
	whole.Write(wasm[first:])
	for i := range m.sections {
		if s := &m.sections[i]; s.Start > first && !ownSection(s) {
			code.Write(wasm[s.Start:s.End])
		}
	}
	m.digest, m.codeDigest = "sha256:"+hex.EncodeToString(whole.Sum(nil)), hex.EncodeToString(code.Sum(nil))
}

func newInfo(wasm []byte, bin *binaryModule) *Info {
	info := &Info{
		Digest:    bin.digestOf(wasm),
		Size:      int64(len(wasm)),
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
	info.Manifest, info.UnknownKeys, _ = bin.manifest()
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
func (m *binaryModule) toolchain() string {
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

// toolText names tools for people. Go's toolchain stands there as a language
// and as a compiler of the same version, which has its name in it once more.
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
