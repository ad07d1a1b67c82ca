// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// maxCache is how much code a cache directory keeps: some hundred modules of the
// standard Go toolchain.
const maxCache = 2 << 30

// unfinished is the age at which an unfinished file is abandoned: its process
// was killed.
const unfinished = time.Hour

// cacheFile is an entry, of this format or an earlier one, under another name until
// it is whole, or code that earlier versions let wazero write:
// <dir>/wazero-<version>/<hash>. Nothing else is touched: users name the directory.
var cacheFile = regexp.MustCompile(`^[0-9a-f]{64}(\.[0-9]+\.tmp)?$`)

// cached is a file of a cache directory.
type cached struct {
	path    string
	size    int64
	written time.Time
}

// trim removes the code that was written first where a cache directory has more
// than so many bytes, and what was never finished. Code that still runs stays in
// memory; it is compiled again when it is loaded again. Files that cannot be
// removed stay.
func trim(dir string, limit int64, now time.Time) {
	for _, f := range surplus(cacheFiles(dir), limit, now) {
		_ = os.Remove(f.path)
	}
}

// cacheFiles lists the code in a cache directory.
func cacheFiles(dir string) (out []cached) {
	paths, _ := filepath.Glob(filepath.Join(dir, "wazero-*", "*")) // the patterns are fine
	entries, _ := filepath.Glob(filepath.Join(dir, "wasmctl-[0-9]*", "*"))
	for _, path := range append(paths, entries...) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeType != 0 || !cacheFile.MatchString(filepath.Base(path)) {
			continue
		}
		out = append(out, cached{path, info.Size(), info.ModTime()})
	}
	return out
}

// surplus returns what is to go.
func surplus(files []cached, limit int64, now time.Time) (out []cached) {
	slices.SortFunc(files, func(a, b cached) int { return cmp.Or(b.written.Compare(a.written), cmp.Compare(a.path, b.path)) })
	for _, f := range files {
		part := filepath.Ext(f.path) == ".tmp"
		if !part {
			limit -= f.size
		}
		if !part && limit < 0 || part && now.Sub(f.written) > unfinished {
			out = append(out, f)
		}
	}
	return out
}
