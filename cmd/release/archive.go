// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// file is a file of an archive. All files belong to root and have the time of the archive.
type file struct {
	name    string
	content []byte
	program bool
}

// tarOf creates an archive. The same files give the same bytes.
func tarOf(at time.Time, files []file) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := tar.Header{Name: f.name, Mode: 0o644, ModTime: at, Size: int64(len(f.content)), Format: tar.FormatUSTAR}
		if f.program {
			h.Mode = 0o755
		}
		_ = w.WriteHeader(&h) // writes to memory do not fail
		_, _ = w.Write(f.content)
	}
	_ = w.Close()
	return b.Bytes()
}

func compress(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b) // writes to memory do not fail
	_ = w.Close()
	return out.Bytes()
}

// filesOf returns the files of a directory, sorted by name, with a prefix before their names.
func filesOf(dir, prefix string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		files = append(files, file{path.Join(prefix, filepath.ToSlash(relative)), content, info.Mode()&0o111 != 0})
		return err
	})
	return files, err
}

// writeFiles writes files to a directory, by name.
func writeFiles(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // everybody may read it
			return err
		}
		if err := os.WriteFile(to, files[name], 0o644); err != nil { //nolint:gosec // everybody may read it
			return err
		}
	}
	return nil
}
