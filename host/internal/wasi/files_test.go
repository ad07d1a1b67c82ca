// SPDX-License-Identifier: Apache-2.0

package wasi

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// content is that of the files of both.
var content = map[string][]byte{
	"config.yaml": []byte("replicas: 3\n"), "etc/app/a": nil, "etc/app/b": []byte(strings.Repeat("0123456789", 60)), "etc/app/long.name.of.a.file": {1}, "etc/tls.crt": []byte("pem"),
}

func testFiles() *Files {
	f, err := NewFiles(content)
	if err != nil {
		panic(err)
	}
	return f
}

// theirFiles are the same files for wazero.
func theirFiles() fs.FS {
	m, ours := fstest.MapFS{}, testFiles()
	add := func(name string, mode fs.FileMode, data []byte) {
		n, _ := ours.root.walk(name)
		m[name] = &fstest.MapFile{Mode: mode, Data: data, ModTime: time.Unix(0, 0), Sys: &sys.Stat_t{Mode: mode, Ino: n.serial, Nlink: 1, Size: int64(len(data))}}
	}
	for name, data := range content {
		add(name, 0o444, data)
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			if add(dir, fs.ModeDir|0o555, nil); dir == "." {
				break
			}
		}
	}
	return m
}

// ofFiles are the functions that do most with files.
var ofFiles = []string{
	"path_open", "path_open", "path_filestat_get", "fd_read", "fd_read", "fd_pread", "fd_seek", "fd_tell", "fd_filestat_get", "fd_fdstat_get", "fd_readdir", "fd_close", "fd_renumber", "fd_prestat_get", "fd_prestat_dir_name",
}

var paths = []string{
	"config.yaml", "etc", "etc/", "etc/app", "etc/app/a", "etc/app/b", "etc/app/b", "./etc//app/b", "app/b", "a", "b", "etc/../config.yaml", ".", "", "/etc", "..", "../etc", "missing", "etc/missing/x", "config.yaml/x", "etc/\x00", "\xff",
}

// fit makes some arguments such that the function finds what it works on.
func fit(rnd *rand.Rand, name string, p []uint64, image []byte) {
	if len(p) > 0 && rnd.IntN(3) > 0 && (strings.HasPrefix(name, "fd_") || strings.HasPrefix(name, "path_")) {
		p[0] = uint64(3 + rnd.IntN(8))
	}
	at := map[string]int{"path_open": 2, "path_filestat_get": 2, "path_create_directory": 1, "path_readlink": 1, "path_unlink_file": 1, "path_remove_directory": 1, "path_rename": 1, "path_link": 2}[name]
	if at > 0 && rnd.IntN(8) > 0 {
		text := paths[rnd.IntN(len(paths))]
		p[at], p[at+1] = uint64(rnd.IntN(len(image)-64)), uint64(len(text))
		copy(image[p[at]:], text)
	}
	switch name {
	case "poll_oneoff":
		p[0], p[2] = p[0]&^7, uint64(rnd.IntN(6))
	case "path_open": // to write is another test's: wazero's files do not know that they are read only
		p[4], p[5], p[7] = uint64(rnd.IntN(2)*openDirectory), uint64(rnd.IntN(2)*2), uint64(rnd.IntN(2)*flagNonblock)
	case "fd_seek":
		p[1], p[2] = uint64(rnd.IntN(1200)-600), uint64(rnd.IntN(4))
	case "fd_pread":
		p[3] = uint64(rnd.IntN(700) - 20)
	case "fd_readdir":
		p[1], p[2], p[3], p[4] = uint64(rnd.IntN(memorySize-400)), uint64(rnd.IntN(300)), uint64(rnd.IntN(8)), memorySize-8
		if rnd.IntN(2) == 0 {
			p[3] = 0
		}
	}
}

// dropSerials takes the numbers of files out of what fd_readdir has written, as wazero
// does not know them there.
func dropSerials(memory []byte, p []uint64) {
	used := le.Uint32(memory[p[4]:])
	for b := memory[p[1]:][:used]; len(b) >= direntSize; b = b[min(len(b), direntSize+int(le.Uint32(b[16:]))):] {
		clear(b[8:16])
	}
}

// A path must be one, and none of a file and a folder at once.
func TestNewFiles_RefusesWhatIsNoTree(t *testing.T) {
	many := map[string][]byte{}
	for i := range maxNodes {
		many[strings.Repeat("a/", i%200)+string(rune('b'+i%20))+string(rune(0x4e00+i))] = nil
	}
	for _, bad := range []map[string][]byte{
		{"/etc/x": nil}, {"": nil}, {".": nil}, {"a/../b": nil}, {"a//b": nil}, {"a/": nil}, {"a\x00": nil}, {"\xff": nil}, {"a": nil, "a/b": nil}, {"a/b": nil, "a/b/c/d": nil}, {strings.Repeat("a/", maxNodes) + "b": nil}, many,
	} {
		if _, err := NewFiles(bad); err == nil {
			t.Errorf("takes %.50q", strings.Join(keys(bad), " "))
		}
	}
}

func keys(m map[string][]byte) (list []string) {
	for k := range maps.Keys(m) {
		list = append(list, k)
	}
	return list
}

// call calls a function with a path at its parameter; the others are 0 but for those
// given.
func (f *fake) path(t *testing.T, name, text string, at int, params map[int]uint64) Errno {
	t.Helper()
	p := make([]uint64, 9)
	p[0], p[at], p[at+1] = rootFD, 1024, uint64(len(text))
	for i, v := range params {
		p[i] = v
	}
	f.Memory().WriteString(1024, text)
	Funcs()[name].Call(f, p)
	return Errno(p[0])
}

// Nothing can be changed, and each way to try has the error of a file system that is
// read only, or that of what is in the way.
func TestPaths_AreReadOnly(t *testing.T) {
	_, g := ours(t, t.Context(), forwarder([]string{"path_open"}), &effects{})
	for _, tc := range []struct {
		name, path string
		at         int
		params     map[int]uint64
		want       Errno
	}{
		{"path_open", "config.yaml", 2, map[int]uint64{5: rightWrite}, readOnly},
		{"path_open", "config.yaml", 2, map[int]uint64{4: openTruncate}, readOnly},
		{"path_open", "config.yaml", 2, map[int]uint64{7: flagAppend}, readOnly},
		{"path_open", "config.yaml", 2, map[int]uint64{4: openCreate | openExclusive}, exists},
		{"path_open", "config.yaml", 2, map[int]uint64{4: openCreate}, OK},
		{"path_open", "config.yaml/", 2, nil, notDir},
		{"path_open", "new", 2, map[int]uint64{4: openCreate}, readOnly},
		{"path_open", "etc", 2, map[int]uint64{5: rightWrite}, isFolder},
		{"path_open", strings.Repeat("x", maxPath+1), 2, nil, nameTooLong},
		{"path_create_directory", "new", 1, nil, readOnly},
		{"path_create_directory", "etc", 1, nil, exists},
		{"path_remove_directory", "etc", 1, nil, readOnly},
		{"path_unlink_file", "config.yaml", 1, nil, readOnly},
		{"path_unlink_file", "new", 1, nil, noEntry},
		{"path_filestat_set_times", "config.yaml", 2, nil, readOnly},
		{"path_readlink", "config.yaml", 1, map[int]uint64{4: 1}, invalid},
		{"path_rename", "config.yaml", 1, map[int]uint64{3: rootFD, 4: 1024, 5: 3}, readOnly},
		{"path_link", "new", 2, map[int]uint64{4: rootFD, 5: 1024, 6: 3}, noEntry},
	} {
		if got := g.path(t, tc.name, tc.path, tc.at, tc.params); got != tc.want {
			t.Errorf("%s(%.40q, %v): errno %d, want %d", tc.name, tc.path, tc.params, got, tc.want)
		}
	}
}

// A guest has no more than maxOpen descriptors, and those that it closes are free again.
func TestDescriptors_AreBounded(t *testing.T) {
	_, g := ours(t, t.Context(), forwarder([]string{"path_open"}), &effects{})
	for i := rootFD + 1; i < maxOpen; i++ {
		if errno := g.path(t, "path_open", "etc/app/b", 2, nil); errno != OK {
			t.Fatalf("descriptor %d: errno %d", i, errno)
		}
	}
	copied := g.descriptors.Clone()
	if errno := g.path(t, "path_open", "etc/app/b", 2, nil); errno != tooManyOpen {
		t.Errorf("one more: errno %d", errno)
	}
	fdClose(g, []uint64{20})
	if errno := g.path(t, "path_open", "etc/app/b", 2, map[int]uint64{8: 100}); errno != OK {
		t.Errorf("after one was closed: errno %d", errno)
	}
	if fd, _ := g.module.Memory().ReadUint32Le(100); fd != 20 {
		t.Errorf("got descriptor %d, want the one that was closed", fd)
	}
	fdSeek(g, []uint64{30, 5, 0, 0})
	if copied.list[30].offset != 0 {
		t.Error("a copy changes with the guest")
	}
}

// What pods have and a module lacks is said once.
func TestPathOpen_SaysWhatAPodHas(t *testing.T) {
	e := &effects{}
	_, g := ours(t, t.Context(), forwarder([]string{"path_open"}), e)
	for range 3 {
		if errno := g.path(t, "path_open", "etc/nothing", 2, nil); errno != noEntry {
			t.Errorf("errno %d", errno)
		}
		if errno := g.path(t, "path_open", cluster+"kubernetes.io/serviceaccount/namespace", 2, nil); errno != noEntry {
			t.Errorf("errno %d", errno)
		}
	}
	if got := e.Stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "serviceaccount/namespace") {
		t.Errorf("said %q", got)
	}
}
