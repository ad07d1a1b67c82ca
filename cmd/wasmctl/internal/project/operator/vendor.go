// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// vendor is the folder of a project with the sources of its libraries. In a stage, it is in the folder of
// links.
const vendor = "vendor"

// readVendored returns the modules of a project's vendor folder with the versions of their sources, and their
// Go versions. There are none without the folder, or if the go command would not use it.
func (s *Stage) readVendored(ctx context.Context, p *Project) (versions, languages map[string]string, err error) {
	if p.Modules != "" && p.Modules != vendor {
		return nil, nil, nil
	}
	text, err := os.ReadFile(filepath.Join(p.Root, vendor, "modules.txt"))
	if errors.Is(err, fs.ErrNotExist) && p.Modules == "" {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("vendor: %w; run go mod vendor, or build without -mod=vendor", err)
	}
	// The go command compares the folder with go.mod.
	if err := goCommand(ctx, p.Root, vendor, io.Discard, s.stderr, "list", "-e", s.pkg); err != nil {
		return nil, nil, fmt.Errorf("vendor: %w", err)
	}
	versions, languages = map[string]string{}, map[string]string{}
	module := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 3 && words[0] == "#" && words[2] != "=>":
			module = words[1]
			versions[module] = words[2]
			if len(words) == 6 { // PATH VERSION => PATH VERSION
				versions[module] = words[5]
			}
		case len(words) >= 2 && words[0] == "##" && words[len(words)-2] == "go":
			languages[module] = words[len(words)-1]
		}
	}
	return versions, languages, nil
}

// useVendored makes go.mod use the project's vendored modules, and returns its other replace lines. A vendored
// module has no go.mod, so the stage gets a copy with one.
func (s *Stage) useVendored(ctx context.Context, p *Project, mod goMod) ([]replacement, error) {
	versions, languages, err := s.readVendored(ctx, p)
	if err != nil || versions == nil {
		return mod.Replace, err
	}
	at := filepath.Join(s.dir, links, vendor)
	if err := linkFiles(filepath.Join(p.Root, vendor), at, func(rel string) bool { return rel == "modules.txt" }); err != nil {
		return nil, err
	}
	delete(versions, runtimePath) // there is a stand-in
	delete(versions, sdkPath)
	s.vendored = versions
	edit := []string{"mod", "edit"}
	for module, v := range versions {
		s.pinned[module] = v
		text := "module " + module + "\n"
		if l := languages[module]; l != "" {
			text += "\ngo " + l + "\n"
		}
		dir := filepath.Join(at, filepath.FromSlash(module))
		err := os.MkdirAll(dir, 0o755) // without sources if no package needs it
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600)
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(mod.Require, func(r version) bool { return r.Path == module }) {
			edit = append(edit, "-require="+module+"@"+v)
		}
		edit = append(edit, "-replace="+module+"="+vendoredAt(module))
	}
	var others []replacement
	for _, r := range mod.Replace {
		if versions[r.Old.Path] == "" {
			others = append(others, r)
		} else if r.Old.Version != "" { // a line for one version has precedence
			edit = append(edit, "-dropreplace="+r.Old.String())
		}
	}
	return others, s.command(ctx, s.stderr, edit...)
}

// vendoredAt returns the folder of a vendored module, relative to the stage.
func vendoredAt(module string) string { return "./" + path.Join(links, vendor, module) }

// complete lists the packages of the program. A vendored module that lacks one of them, because only the
// stand-in uses the package, is taken from the module cache or the registry. It is an error if a module cannot
// be had.
func (s *Stage) complete(ctx context.Context) ([]pkg, error) {
	for {
		packages, err := s.packages(ctx)
		if err != nil {
			return nil, s.absence(nil, err)
		}
		edit := []string{"mod", "edit"}
		for i := range packages {
			if p := &packages[i]; p.Dir == "" && !p.Standard {
				if m := s.vendorOf(p.ImportPath); m != "" {
					delete(s.vendored, m)
					edit = append(edit, "-dropreplace="+m)
				}
			}
		}
		if len(edit) == 2 {
			return packages, s.absence(packages, nil)
		}
		if err := s.command(ctx, s.stderr, edit...); err != nil {
			return nil, err
		}
	}
}

// vendorOf returns the vendored module that has a package. It is empty if there is none.
func (s *Stage) vendorOf(importPath string) string {
	for at := importPath; at != "."; at = path.Dir(at) {
		if s.vendored[at] != "" {
			return at
		}
	}
	return ""
}
