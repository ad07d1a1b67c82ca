// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var (
	// ofBuild matches the files that build a project.
	ofBuild = regexp.MustCompile(`^((GNU)?[Mm]akefile|.*\.mk|(.*[.-])?Dockerfile(\..*)?|\.?goreleaser.*\.ya?ml|\.ko\.ya?ml|[Tt]askfile.*\.ya?ml|magefile\.go|.*build.*\.sh)$`)
	// setByLinker matches a variable that the linker sets, and withTags build tags.
	setByLinker = regexp.MustCompile(`-X[ =]['"]?([^\s'"=]*\.[A-Za-z_]\w*)=`)
	withTags    = regexp.MustCompile(`(?:^|\s|")-?-tags[ =]['"]?([\w,.]+)`)
)

// ownBuild reports the variables and tags that the project's own build sets, and this one does not: the
// program would have other values as a module.
func (p *Project) ownBuild() (list []Finding) {
	seen := map[string]bool{}
	_ = filepath.WalkDir(p.Root, func(path string, d fs.DirEntry, err error) error { // a folder that cannot be read builds nothing
		switch {
		case err != nil:
			return nil //nolint:nilerr // see above
		case d.IsDir() && path != p.Root && notDeployed.MatchString(d.Name()) && d.Name() != "hack":
			return fs.SkipDir
		case d.IsDir() || !ofBuild.MatchString(d.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		find := func(pattern *regexp.Regexp, what, do string) {
			for _, m := range pattern.FindAllSubmatchIndex(text, -1) {
				name := string(text[m[2]:m[3]])
				if seen[what+name] {
					continue
				}
				seen[what+name] = true
				at := Place{p.relative(path), 1 + bytes.Count(text[:m[2]], []byte("\n"))}
				list = append(list, Finding{at, Warn, fmt.Sprintf(what, name), fmt.Sprintf(do, name)})
			}
		}
		if p.LDFlags == "" {
			find(setByLinker, "the project's build sets %s by the linker", `give the build a value if the program needs it: --ldflags "-X %s=VALUE" (key ldflags of wasmctl.yaml, or GOFLAGS)`)
		}
		if p.Tags == "" {
			find(withTags, "the project's build has the tags %s", "build with --tags %s (key tags of wasmctl.yaml, or GOFLAGS) if they are for the program and not for its tests")
		}
		return nil
	})
	return list
}
