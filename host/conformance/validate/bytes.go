// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
)

// parts are the checks of a module's bytes, with the first words of their problems, and the remedy.
var parts = []struct {
	id       string
	prefixes []string
	next     string
}{
	{"exports", []string{"export["}, "build with an SDK and its flags, or export it as in ABI.md, section 1"},
	{"imports", []string{"import["}, "import only from reconciler_v1 and wasi_snapshot_preview1, with the types of ABI.md, section 5"},
	{"memory", []string{"memory", "table"}, "let the module start with less, or raise limits.memory in its manifest"},
	{"manifest", []string{"section[", "manifest"}, "correct the manifest in the source and write it again: wasmctl annotate MODULE"},
	{"binary", []string{""}, "build it again, as a core module for ABI version 1"},
}

// bytes checks the module's bytes. It reports whether the module can be loaded.
// be loaded.
func (e *exam) bytes() bool {
	rest := e.info.Problems
	failed := map[string]bool{}
	for _, p := range parts {
		rest = slices.DeleteFunc(slices.Clone(rest), func(problem string) bool {
			if !slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(problem, prefix) }) {
				return false
			}
			failed[p.id] = true
			e.add(p.id, Fail, problem, p.next)
			return true
		})
	}
	if failed["binary"] {
		return false
	}
	for _, check := range []struct {
		id    string
		found func()
	}{{"exports", e.goodExports}, {"imports", e.goodImports}, {"memory", e.goodMemory}, {"manifest", e.goodManifest}} {
		if !failed[check.id] {
			check.found()
		}
	}
	e.size()
	return len(failed) == 0
}

func (e *exam) exports(name string) bool {
	return slices.ContainsFunc(e.info.Exports, func(x load.Export) bool { return x.Name == name })
}

func (e *exam) goodExports() {
	var names []string
	for _, x := range abi.Exports {
		if e.exports(x.Name) && x.Name != abi.ExportMarker {
			names = append(names, x.Name)
		}
	}
	e.ok("exports", "ABI %d: %s", e.info.ABI, strings.Join(names, ", "))
}

func (e *exam) goodImports() {
	var unknown []string
	ours := 0
	for _, i := range e.info.Imports {
		if i.Module != abi.ImportModule {
			continue
		}
		ours++
		if _, known := abi.HostFuncs[i.Name]; !known {
			unknown = append(unknown, i.Name)
		}
	}
	if len(unknown) > 0 {
		e.add("imports", Warn, "this host does not have "+strings.Join(unknown, ", ")+": it answers UNSUPPORTED",
			"upgrade wasmctl, or look in the caps of a request before calling it; requires in the manifest keeps the module from older hosts")
		return
	}
	e.ok("imports", "%d host functions, %d of WASI", ours, len(e.info.Imports)-ours)
}

func (e *exam) goodMemory() {
	const much = 64 << 20
	if m := e.info.Memory; m != nil && m.Min > much {
		e.add("memory", Warn, "an instance starts with "+size(m.Min), "a smaller stack and smaller static data leave room for more instances")
		return
	}
	e.ok("memory", "an instance starts with %s", size(e.info.Memory.Min))
}

func (e *exam) goodManifest() {
	m := e.info.Manifest
	switch {
	case m == nil && e.exports(abi.ExportDescribe):
		e.add("manifest", Warn, "none in the file: reading the manifest requires running the module", "write it into the file: wasmctl annotate MODULE")
	case m == nil:
		e.add("manifest", Warn, "none: the manifest is unknown", "export describe, or run it with --for and grant it the rights that it needs")
	case len(e.info.UnknownKeys) > 0:
		e.add("manifest", Warn, "has unknown keys: "+strings.Join(e.info.UnknownKeys, ", "), "they are ignored: upgrade wasmctl, or correct the spelling")
	case len(m.Warnings()) > 0:
		e.add("manifest", Warn, strings.Join(m.Warnings(), "; "), "correct the manifest")
	case m.For == nil:
		e.add("manifest", Warn, "does not name the kind to reconcile", "set for; without it, wasmctl run needs --for")
	default:
		e.ok("manifest", "%s for %s, %d owned and %d watched kinds, %d capabilities", cmp.Or(m.Name, "a module without a name"), m.For.Kind, len(m.Owns), len(m.Watches), len(m.Capabilities))
	}
}

// size finds parts of the file that are not needed.
func (e *exam) size() {
	const much = 24 << 20 // operators on controller-runtime have 16 to 22 MiB
	var debug int64
	for _, s := range e.info.Sections {
		if strings.HasPrefix(s.Name, "custom .debug_") { // names of functions are needed: they identify a panic
			debug += s.Size
		}
	}
	const next = "build without debug information: -ldflags=-s -w for Go, -no-debug for TinyGo, strip = \"debuginfo\" in the release profile of Cargo"
	switch total := e.info.Size; {
	case total > load.MaxModuleSize:
		e.add("size", Fail, fmt.Sprintf("%s, the limit is %s", size(total), size(load.MaxModuleSize)), next)
	case debug > total/4:
		e.add("size", Warn, fmt.Sprintf("%s, and %s of it is debug information", size(total), size(debug)), next)
	case total > much:
		e.add("size", Warn, size(total)+": it takes seconds to compile, when it is loaded for the first time",
			"import less, such as the groups of k8s.io/api that it uses instead of client-go's whole scheme; "+next)
	default:
		e.ok("size", "%s", size(total))
	}
}

// fields returns the keys of a manifest with their values.
func fields(m *abi.Manifest) (fields map[string]any) {
	b, _ := json.Marshal(m) // it was decoded from JSON
	_ = json.Unmarshal(b, &fields)
	return fields
}

// difference lists the keys with different values in two manifests.
func difference(a, b *abi.Manifest) string {
	x, y, keys := fields(a), fields(b), map[string]bool{}
	for _, from := range []map[string]any{x, y} {
		for key := range from {
			if !reflect.DeepEqual(x[key], y[key]) {
				keys[key] = true
			}
		}
	}
	return joined(keys)
}
