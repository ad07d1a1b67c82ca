// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// overlays is the folder of the stand-in with the table of changes to libraries, and
// tableFile is that table. The folders next to it have the files that are added.
const overlays, tableFile = "overlays", "overlays.yaml"

// overlay is an entry of the table: a change to a library.
type overlay struct {
	// Library is the path of a module, or a pattern of such paths.
	Library string `json:"library"`
	// Why is for the reader of the table. Tested lists the versions that the tests check.
	Why    string   `json:"why"`
	Tested []string `json:"tested,omitempty"`

	// From and Before limit the versions of the library. ProjectBefore limits the version that
	// go.mod of the project requires, which may be older than the version of the build.
	From          string `json:"from,omitempty"`
	Before        string `json:"before,omitempty"`
	ProjectBefore string `json:"project_before,omitempty"`
	// Unless names a feature that the entry removes: only a program that does not use the
	// feature gets the change.
	Unless feature `json:"unless,omitempty"`

	// Remove lists patterns of files; each must match a file. Of the removed files, the methods named
	// in Keep stay, of types that the program can reach. Folder, next to the table, has the files to add. Edits replace text.
	Remove []string `json:"remove,omitempty"`
	Keep   []string `json:"keep,omitempty"`
	Folder string   `json:"folder,omitempty"`
	Edits  []edit   `json:"edits,omitempty"`
}

// edit replaces a text in a file of a library, which must have it.
type edit struct {
	File    string `json:"file"`
	Find    string `json:"find"`
	Replace string `json:"replace"`
}

// library is a module that the program uses. If it is partial, it has only the packages that the project needs.
type library struct {
	path, version, dir string
	partial            bool
}

// readOverlays reads the table of the stand-in in a folder.
func readOverlays(runtime string) (table []overlay, err error) {
	file := filepath.Join(runtime, overlays, tableFile)
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &table)
	}
	if err != nil {
		return nil, fmt.Errorf("overlays[%s]: %w", file, err)
	}
	return table, nil
}

// librariesOf returns the modules of packages, without those that are folders of the project or changed already.
func (s *Stage) librariesOf(packages []pkg) (list []library) {
	seen := map[string]bool{}
	for i := range packages {
		m := packages[i].Module
		if m == nil || m.Dir == "" || seen[m.Path] {
			continue
		}
		seen[m.Path] = true
		if strings.HasPrefix(m.Dir, s.dir) {
			if strings.HasPrefix(m.Dir, filepath.Join(s.dir, links, vendor)) {
				list = append(list, library{m.Path, s.vendored[m.Path], m.Dir, true})
			}
			continue
		}
		version := m.Version
		if m.Replace != nil {
			version = cmp.Or(m.Replace.Version, version)
		}
		list = append(list, library{m.Path, version, m.Dir, false})
	}
	return list
}

// change applies the entries that suit a library to a copy of it, and makes go.mod use the copy.
func (s *Stage) change(ctx context.Context, runtime string, l library, table []overlay, unused features, reachable func(typeName) bool) error {
	var entries []overlay
	for _, o := range table {
		if o.suits(l, s.required[l.path], unused) {
			entries = append(entries, o)
		}
	}
	if entries == nil {
		return nil
	}
	at := filepath.Join(s.dir, links, filepath.FromSlash(l.path))
	err := copyWithout(l, at, entries, reachable)
	for i := range entries {
		if err == nil {
			err = entries[i].add(runtime, at, l.partial)
		}
	}
	if err == nil {
		err = s.point(ctx, l.path, l.path)
	}
	if err != nil {
		return fmt.Errorf("library[%s@%s]: %w", l.path, l.version, err)
	}
	return nil
}

// suits reports whether the program gets the change to this library. required is the version in
// go.mod of the project.
func (o *overlay) suits(l library, required string, unused features) bool {
	match, _ := path.Match(o.Library, l.path) // a bad pattern matches nothing
	return match && !older(l.version, o.From) && (o.Before == "" || older(l.version, o.Before)) &&
		(o.ProjectBefore == "" || older(required, o.ProjectBefore)) && (o.Unless == "" || unused[o.Unless][l.path])
}

// copyWithout links the files of a library into the folder at, without those that the entries
// remove. It writes what the entries keep of these, for types that are reachable.
func copyWithout(l library, at string, entries []overlay, reachable func(typeName) bool) error {
	found := map[string]bool{}
	keep := map[string][]string{} // by file
	err := linkFiles(l.dir, at, func(rel string) (remove bool) {
		for i := range entries {
			for _, pattern := range entries[i].Remove {
				if matches(pattern, rel) {
					found[pattern], remove = true, true
					if entries[i].Keep != nil {
						keep[rel] = entries[i].Keep
					}
				}
			}
		}
		return remove
	})
	for rel, methods := range keep {
		if err == nil {
			own := path.Join(l.path, path.Dir(rel))
			err = writeCut(filepath.Join(l.dir, rel), filepath.Join(at, rel), methods, func(name string) bool { return reachable(typeName{own, name}) })
		}
	}
	for i := range entries {
		for _, pattern := range entries[i].Remove {
			if err == nil && !found[pattern] && !l.partial {
				err = entries[i].misfit(fmt.Errorf("%s: %w, but wasmctl wants to remove it", pattern, fs.ErrNotExist))
			}
		}
	}
	return err
}

// matches reports whether a file, by its slash-separated path, matches a pattern of the table.
func matches(pattern, rel string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(rel, pattern)
	}
	if !strings.Contains(pattern, "/") {
		rel = path.Base(rel)
	}
	ok, _ := path.Match(pattern, rel)
	return ok
}

// add adds the files of the entry's folder to the copy of a library, and edits its files. A partial library may
// lack some of these.
func (o *overlay) add(runtime, at string, partial bool) error {
	if o.Folder != "" {
		from := filepath.Join(runtime, overlays, o.Folder)
		if err := linkFiles(from, at, func(rel string) bool { return path.Base(rel) == "doc.go" }); err != nil {
			return err
		}
	}
	for _, e := range o.Edits {
		if err := e.apply(at); err != nil && (!partial || !errors.Is(err, fs.ErrNotExist)) {
			return o.misfit(err)
		}
	}
	return nil
}

// misfit explains an error of an entry that does not fit the version of its library.
func (o *overlay) misfit(err error) error {
	hint := "require a version that wasmctl was tested with (" + strings.Join(o.Tested, ", ") + ")"
	return fmt.Errorf("%w; %s, or update guest-sdk/controller-runtime/%s/%s of wasmctl", err, hint, overlays, tableFile)
}

var errNoText = errors.New("the file does not have the text")

// apply edits a file of the library in dir, where it is a link.
func (e edit) apply(dir string) error {
	file := filepath.Join(dir, filepath.FromSlash(e.File))
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w, but wasmctl wants to replace %q in it", e.File, fs.ErrNotExist, e.Find)
	}
	if err == nil && !strings.Contains(string(text), e.Find) {
		return fmt.Errorf("%s: %w that wasmctl wants to replace: %q", e.File, errNoText, e.Find)
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), e.Find, e.Replace, 1)), 0o600)
}
