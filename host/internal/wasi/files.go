// SPDX-License-Identifier: Apache-2.0

package wasi

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Bounds of the files of a module.
const (
	maxNodes = 4096 // files and folders
	maxPath  = 4096 // bytes of a path that a guest names
)

// Files are what guests read: a tree that nobody changes. The zero value is an empty
// root.
type Files struct{ root node }

// node is a file or a folder.
type node struct {
	name    string
	serial  uint64 // that no other has; 0 is the root
	content []byte
	// children are those of a folder, by name; nil for a file that is not the root.
	children []*node
}

// NewFiles makes the tree of files, by their paths below the root, without a slash at
// the beginning.
func NewFiles(files map[string][]byte) (*Files, error) {
	t := &Files{}
	folders := map[string]*node{".": &t.root}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !fs.ValidPath(name) || name == "." || len(name) > maxPath || strings.Contains(name, "\x00") {
			return nil, fmt.Errorf("file[%s]: is not a path such as etc/app/config.yaml", name)
		}
		if folders[name] != nil {
			return nil, fmt.Errorf("file[%s]: is a folder of another file", name)
		}
		dir, err := t.folder(folders, path.Dir(name), files)
		if err != nil {
			return nil, err
		}
		dir.children = append(dir.children, &node{name: path.Base(name), content: files[name]})
	}
	return t, t.order()
}

// folder returns the folder of a path, which it makes with those above.
func (t *Files) folder(folders map[string]*node, name string, files map[string][]byte) (*node, error) {
	if n := folders[name]; n != nil {
		return n, nil
	}
	if _, isFile := files[name]; isFile {
		return nil, fmt.Errorf("file[%s]: is a folder of another file", name)
	}
	if len(folders) > maxNodes {
		return nil, errTooMany
	}
	above, err := t.folder(folders, path.Dir(name), files)
	if err != nil {
		return nil, err
	}
	n := &node{name: path.Base(name), children: []*node{}}
	above.children = append(above.children, n)
	folders[name] = n
	return n, nil
}

var errTooMany = fmt.Errorf("are more than %d files and folders", maxNodes)

// order sorts the folders and numbers all nodes.
func (t *Files) order() error {
	todo, serial := []*node{&t.root}, uint64(0)
	for len(todo) > 0 {
		n := todo[0]
		todo = todo[1:]
		n.serial = serial
		serial++
		slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
		todo = append(todo, n.children...)
	}
	if serial > maxNodes {
		return errTooMany
	}
	return nil
}

func (n *node) folder() bool { return n.children != nil || n.serial == 0 }

// walk returns what is at a clean path below a folder.
func (n *node) walk(name string) (*node, Errno) {
	for name != "" && name != "." {
		if !n.folder() {
			return nil, notDir
		}
		var first string
		first, name, _ = strings.Cut(name, "/")
		i, ok := slices.BinarySearchFunc(n.children, first, func(c *node, name string) int { return cmp.Compare(c.name, name) })
		if !ok {
			return nil, noEntry
		}
		n = n.children[i]
	}
	return n, OK
}

// kind is the type of a node in WASI.
func (n *node) kind() byte {
	if n.folder() {
		return directory
	}
	return regularFile
}

// stat writes what is known of a node.
func (n *node) stat(b []byte) {
	clear(b)
	le.PutUint64(b[8:], n.serial)
	b[16] = n.kind()
	le.PutUint64(b[24:], 1) // links
	le.PutUint64(b[32:], uint64(len(n.content)))
}
