// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// size reports packages that make the module much larger.
func (c *compiled) size() []Finding {
	for i := range c.packages {
		p := &c.packages[i]
		if p.Standard {
			continue
		}
		for _, path := range p.Imports {
			if path == "text/template" || path == "html/template" {
				what := p.ImportPath + " imports " + path + ": if it is used, the linker keeps all methods of all types"
				return []Finding{{
					Place{},
					Warn, what,
					"look at the size of the built module: a host loads 128 MiB; avoid the package if that is too much",
				}}
			}
		}
	}
	return nil
}

// oldest is the oldest version of controller-runtime whose programs are likely to compile with the
// modules' API.
const oldest = "v0.15.0"

var required = regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(runtimePath) + `\s+(v\S+)`)

// version reports an older controller-runtime in the project.
func (p *Project) version() []Finding {
	text, err := os.ReadFile(filepath.Join(p.Root, "go.mod"))
	m := required.FindSubmatchIndex(text)
	if err != nil || m == nil {
		return nil
	}
	v := string(text[m[2]:m[3]])
	if !older(v, oldest) {
		return nil
	}
	return []Finding{{
		Place{"go.mod", 1 + strings.Count(string(text[:m[2]]), "\n")},
		Warn,
		"controller-runtime " + v + " has an API that differs from that of modules (0.15 to 0.25)", "update it to " + oldest + " or newer",
	}}
}
