// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// CheckManifest returns the requests of a manifest that this host cannot satisfy with these
// capabilities, and its contradictions to the exports of the module.
func CheckManifest(m *abi.Manifest, caps []string, exported func(name string) bool) []string {
	return append(checkRequires(m, caps), checkHooks(m, exported)...)
}

// checkHooks returns the contradictions between manifest and exports about optional exports,
// which the host would otherwise call, or never call, without notice.
func checkHooks(m *abi.Manifest, exported func(name string) bool) []string {
	var out []string
	hook := func(name string) bool { return m.Hook(name, exported(name)) }
	absent := func(name string) string {
		if exported(name) {
			return fmt.Sprintf("but does not name %q in hooks", name)
		}
		return fmt.Sprintf("but the module does not export %q", name)
	}
	switch finalize := hook(abi.ExportFinalize); {
	case m.Finalizer != "" && !finalize:
		out = append(out, fmt.Sprintf("manifest: names the finalizer %q, %s", m.Finalizer, absent(abi.ExportFinalize)))
	case m.Finalizer == "" && finalize:
		out = append(out, fmt.Sprintf("export[%s]: never called because the manifest names no finalizer", abi.ExportFinalize))
	}
	for i, w := range m.Watches {
		if w.Map == abi.MapFunc && !hook(abi.ExportMap) {
			out = append(out, fmt.Sprintf("manifest: watches[%d] (%s) has map %q, %s", i, w.Kind, abi.MapFunc, absent(abi.ExportMap)))
		}
	}
	for i := range m.Webhooks {
		w := &m.Webhooks[i]
		if export := w.Export(); !hook(export) {
			out = append(out, fmt.Sprintf("manifest: webhooks[%d] (%s) has type %q, %s", i, w.Path, w.Type, absent(export)))
		}
	}
	if len(m.Conversions) > 0 && !hook(abi.ExportConvert) {
		out = append(out, fmt.Sprintf("manifest: has conversions, %s", absent(abi.ExportConvert)))
	}
	return out
}

// checkRequires returns the capabilities that the manifest requires and this host lacks.
func checkRequires(m *abi.Manifest, caps []string) []string {
	var out []string
	for _, name := range m.Requires {
		if !slices.Contains(caps, name) {
			out = append(out, fmt.Sprintf("manifest: requires %q, which this host does not have: upgrade wasmctl", name))
		}
	}
	return out
}

// Capabilities returns the names of what this host can do: the operations that it serves, in
// the order of ABI.md, and then the words of its section 9. api reports whether
// operations of the API are served.
func Capabilities(api bool) []string {
	var out []string
	for _, op := range abi.Ops {
		if api || !op.IsAPI() {
			out = append(out, string(op))
		}
	}
	if api {
		out = append(out, abi.CapDeclare, abi.CapFinalize)
	}
	return append(out, abi.CapMap, abi.CapFilter, abi.CapConfigure, abi.CapOpaque, abi.CapAdmission, abi.CapConvert)
}
