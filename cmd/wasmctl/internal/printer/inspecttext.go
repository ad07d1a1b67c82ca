// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/text"
)

// wasiModule is the module name of WASI preview 1 in imports.
const wasiModule = "wasi_snapshot_preview1"

// Info returns the text of wasmctl inspect. Only if verbose is set, it lists the functions of WASI,
// which the toolchain imports. Signers are the verified ones. Shards is the attribute that the
// objects are split by, or nil if it is unknown.
func Info(info *load.Info, signers []string, shards *plan.Split, verbose bool) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", name, text.Line(fmt.Sprintf(format, args...))) // writes to memory do not fail
	}
	row("Digest:", "%s", info.Digest)
	for i, s := range signers {
		row(head(i, "Signed by:"), "%s", s)
	}
	row("Size:", "%s", humanize.BytesExact(info.Size))
	row("ABI:", "%s", abiText(info.ABI))
	row("Toolchain:", "%s", cmp.Or(info.Toolchain, "not known"))
	if info.Memory != nil {
		row("Memory:", "%s at start, at most %s", humanize.BytesExact(info.Memory.Min), limitText(info.Memory.Max))
	}
	for i, e := range info.Exports {
		row(head(i, "Exports:"), "%s", strings.TrimSpace(e.Name+" "+typeOf(e.Type, e.Kind)))
	}
	for i, line := range importLines(info.Imports, verbose) {
		row(head(i, "Imports:"), "%s", line)
	}
	for i, f := range info.Files {
		row(head(i, "Files:"), "%s %s", f.Name, humanize.BytesExact(f.Size))
	}
	writeManifest(row, info)
	if shards != nil {
		row("Shards:", "by %s: %s", shards.By, shards.Why)
	}
	for i, p := range info.Problems {
		row(head(i, "Problems:"), "%s", p)
	}
	if len(info.Problems) == 0 {
		row("Problems:", "none")
	}
	_ = t.Flush() // writes to memory do not fail
	return b.Bytes()
}

// importLines returns a line for each distinct import. Unless verbose is set, those of WASI share
// one line at the end.
func importLines(imports []load.Import, verbose bool) []string {
	var lines, wasi []string
	for _, i := range imports {
		line := i.Module + "." + i.Name + " " + typeOf(i.Type, i.Kind)
		list := &lines
		if i.Module == wasiModule && !verbose {
			list = &wasi
		}
		if !slices.Contains(*list, line) {
			*list = append(*list, line)
		}
	}
	if len(wasi) > 0 {
		lines = append(lines, wasiModule+": "+humanize.Plural(len(wasi), "function"))
	}
	return lines
}

func writeManifest(row func(string, string, ...any), info *load.Info) {
	all := info.Manifests()
	if len(all) == 0 {
		row("Manifest:", "none in the file%s", describeHint(info))
		return
	}
	for _, m := range all {
		writeManifestOf(row, m)
	}
	if len(info.UnknownKeys) > 0 {
		row("Unknown keys:", "%s (ignored)", strings.Join(info.UnknownKeys, ", "))
	}
}

func writeManifestOf(row func(string, string, ...any), m *abi.Manifest) {
	b, err := marshalYAML(m)
	if err != nil {
		b = []byte(err.Error())
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		row(head(i, "Manifest:"), "%s", line)
	}
	for i, warning := range m.Warnings() {
		row(head(i, "Warnings:"), "%s", warning)
	}
}

// describeHint explains how to get the manifest of a module that only returns it when it runs.
func describeHint(info *load.Info) string {
	if info.HasExport(abi.ExportDescribe) {
		return "; write it into the file with wasmctl annotate"
	}
	return ""
}

func head(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

// typeOf returns the type of an import or export, or its kind if it has none.
func typeOf(typ, kind string) string { return cmp.Or(typ, "("+kind+")") }

func abiText(v int) string {
	if v == 0 {
		return "none declared"
	}
	return fmt.Sprint(v)
}

func limitText(n int64) string {
	if n == 0 {
		return "the limit of --memory"
	}
	return humanize.BytesExact(n)
}
