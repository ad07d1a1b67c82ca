// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// explain asks the running process for the reason of the object's run and shows the answer. With
// --svg, it writes a picture of the terminal.
func (d *demo) explain(ctx context.Context) error {
	lines := []string{"$ wasmctl run configmapgenerator.wasm --grant-manifest"}
	d.wasmctl.mu.Lock()
	lines = append(lines, d.wasmctl.lines...)
	d.wasmctl.mu.Unlock()
	for _, args := range [][]string{{"status"}, {"explain", "configmapgenerator/hello"}} {
		cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "wasmctl"), append(args, "--socket", d.socket)...)
		out, err := cmd.CombinedOutput()
		fmt.Printf("    $ wasmctl %s\n%s", strings.Join(args, " "), bytes.ReplaceAll(append([]byte("    | "), out...), []byte("\n"), []byte("\n    | ")))
		if err != nil {
			return err
		}
		lines = append(lines, "", "$ wasmctl "+strings.Join(args, " "))
		lines = append(lines, strings.Split(strings.TrimSpace(string(out)), "\n")...)
	}
	fmt.Println()
	if d.svg == "" {
		return nil
	}
	return os.WriteFile(d.svg, svg(lines), 0o644) //nolint:gosec // everybody may read the documentation
}

// svg draws lines like a terminal.
func svg(lines []string) []byte {
	const width, columns, lineHeight = 1080, 132, 18
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">`+"\n",
		width, lineHeight*len(lines)+32)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#161b22"/>`+"\n")
	for i, line := range lines {
		colour := "#c9d1d9"
		if strings.HasPrefix(line, "$ ") {
			colour = "#7ee787"
		}
		if r := []rune(line); len(r) > columns {
			line = string(r[:columns-1]) + "…"
		}
		fmt.Fprintf(&b, `<text x="16" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n", 28+lineHeight*i, colour, html.EscapeString(line))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
