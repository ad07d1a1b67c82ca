// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// linkFiles makes the folder dst with the files of the module in src, its Go files as symbolic
// links. It omits tests, and files for which omit returns true.
func linkFiles(src, dst string, omit func(rel string) bool) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && name == "testdata":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dst, rel), 0o755)
		case strings.HasSuffix(name, "_test.go"), omit(filepath.ToSlash(rel)):
			return nil
		case strings.HasSuffix(name, ".go"), name == "go.mod":
			return os.Symlink(path, filepath.Join(dst, rel))
		}
		return copyFile(path, filepath.Join(dst, rel)) // a link cannot be embedded
	})
}

// linkRoot makes the folder dst with symbolic links to the project's entries, without those that
// control the build. Entries that the package there embeds are copied.
func linkRoot(root, dst string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return err
	}
	patterns, err := embedded(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		from, to := filepath.Join(root, name), filepath.Join(dst, name)
		switch name {
		case "go.mod", "go.sum", "go.work", "go.work.sum", "vendor", ".git", links:
			continue
		}
		matches := func(p string) bool { ok, _ := path.Match(p, name); return ok }
		if !slices.ContainsFunc(patterns, matches) {
			err = os.Symlink(from, to)
		} else if e.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			err = copyFile(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

var embeds = regexp.MustCompile(`(?m)^//go:embed[ \t]+(.*)$`)

// embedded returns the first elements of the patterns that the Go files of a folder embed.
func embedded(dir string) (list []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range embeds.FindAllSubmatch(text, -1) {
			for p := range strings.FieldsSeq(string(m[1])) {
				first, _, _ := strings.Cut(strings.TrimPrefix(strings.Trim(p, "\"`"), "all:"), "/")
				list = append(list, first)
			}
		}
	}
	return list, err
}
