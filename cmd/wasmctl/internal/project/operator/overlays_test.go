// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const standIn = "../../../../../guest-sdk/controller-runtime"

func readTable(t *testing.T) []overlay {
	t.Helper()
	table, err := readOverlays(standIn)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestOverlays_TheTableListsEachFolder: no folder is without an entry, and the reverse. Each
// entry gives a reason, and changes something.
func TestOverlays_TheTableListsEachFolder(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(standIn, overlays))
	if err != nil {
		t.Fatal(err)
	}
	var folders, named []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	for _, o := range readTable(t) {
		if o.Folder != "" {
			named = append(named, o.Folder)
		}
		if o.Why == "" || o.Folder == "" && o.Remove == nil && o.Edits == nil {
			t.Errorf("%s: has no reason, or changes nothing: %+v", o.Library, o)
		}
		if !strings.Contains(o.Library, "*") && o.Tested == nil {
			t.Errorf("%s: has no tested version", o.Library)
		}
		if o.Unless != "" && !slices.Contains([]feature{cbor, docs, protobuf}, o.Unless) {
			t.Errorf("%s: unknown feature %q", o.Library, o.Unless)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, folders) {
		t.Errorf("the table names %q, and there are %q", named, folders)
	}
}

// TestOverlays_FitTheVersionsOfTheTable: each tested version has all files and texts that an entry
// removes or replaces, and the added or edited files are valid Go.
func TestOverlays_FitTheVersionsOfTheTable(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: downloads libraries")
	}
	for _, o := range readTable(t) {
		for _, v := range o.Tested {
			l := library{o.Library, v, downloaded(t, o.Library, v), false}
			required, unused := "v0.0.1", features{o.Unless: {o.Library: true}}
			if !o.suits(l, required, unused) {
				t.Errorf("%s@%s: was tested, but does not get the change", o.Library, v)
			}
			at := t.TempDir()
			if err := errors.Join(copyWithout(l, at, []overlay{o}, func(typeName) bool { return true }), o.add(standIn, at, false)); err != nil {
				t.Errorf("%s@%s: %v", o.Library, v, err)
			}
			for _, e := range o.Edits {
				if _, err := parser.ParseFile(token.NewFileSet(), filepath.Join(at, e.File), nil, 0); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// downloaded returns the folder of a module.
func downloaded(t *testing.T, path, version string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path+"@"+version).Output()
	var m struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		t.Skipf("SKIPPED: %s cannot be downloaded: %v", path, err)
	}
	return m.Dir
}

// TestOverlays_WhatDoesNotFitIsAnError: it names the library, its version, the file and the text
// that was searched. The library itself stays as it is.
func TestOverlays_WhatDoesNotFitIsAnError(t *testing.T) {
	const text = "package x\n\nfunc A() {}\n"
	for _, c := range []struct {
		change overlay
		cause  error
		want   []string
	}{
		{overlay{Remove: []string{"x.go"}}, nil, nil},
		{overlay{Edits: []edit{{"x.go", "func A", "func B"}}}, nil, nil},
		{overlay{Edits: []edit{{"x.go", "func C", "func B"}}}, errNoText, []string{"x.go", `"func C"`, "v0.9.0"}},
		{overlay{Edits: []edit{{"y.go", "func A", "func B"}}}, fs.ErrNotExist, []string{"y.go", `"func A"`, "v0.9.0"}},
		{overlay{Remove: []string{"*.go", "sub/y.go"}}, fs.ErrNotExist, []string{"sub/y.go", "v0.9.0"}},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "x.go"), text)
		s := &Stage{dir: t.TempDir(), stderr: t.Output()}
		write(t, filepath.Join(s.dir, "go.mod"), "module example.com/op\n")
		c.change.Library, c.change.Tested = "example.com/x", []string{"v0.9.0"}
		err := s.change(t.Context(), standIn, library{"example.com/x", "v1.2.3", dir, false}, []overlay{c.change}, nil, nil)
		if !errors.Is(err, c.cause) {
			t.Errorf("%+v: %v", c.change, err)
		}
		for _, want := range append(c.want, "library[example.com/x@v1.2.3]") {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not name %s", err, want)
			}
		}
		if left, err := os.ReadFile(filepath.Join(dir, "x.go")); err != nil || string(left) != text {
			t.Errorf("the library has changed: %q, %v", left, err)
		}
	}
}

// TestMatches_AsInGitignore: the files that a pattern of the table names.
func TestMatches_AsInGitignore(t *testing.T) {
	for pattern, c := range map[string][2][]string{
		"*.pb.go": {{"a.pb.go", "x/y/b.pb.go"}, {"a.go", "x.pb.go/a.go"}},
		"a/b/":    {{"a/b/c.go", "a/b/c/d.go"}, {"a/b", "a/bc.go", "x/a/b/c.go"}},
		"a/*.go":  {{"a/b.go"}, {"b.go", "a/b/c.go", "x/a/b.go"}},
		"[":       {nil, {"["}},
	} {
		for i, want := range []bool{true, false} {
			for _, rel := range c[i] {
				if matches(pattern, rel) != want {
					t.Errorf("%s: %s: want %v", pattern, rel, want)
				}
			}
		}
	}
}

// TestCheck_LibrariesWithOverlaysCompile: those that do not compile for wasip1 as they are, and
// those that get other files.
func TestCheck_LibrariesWithOverlaysCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: downloads libraries")
	}
	packages := map[string]string{ // the one that a program imports
		"github.com/AthenZ/athenz": "/libs/go/sia/util", "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob": "",
		"github.com/aliyun/credentials-go": "/credentials/providers", "github.com/coreos/go-systemd/v22": "/journal", "github.com/google/go-cmp": "/cmp",
		"github.com/hashicorp/go-sockaddr": "", "github.com/lib/pq": "", "github.com/moby/term": "", "github.com/open-policy-agent/cert-controller": "/pkg/rotator",
		"github.com/sirupsen/logrus": "", "go.etcd.io/etcd/client/pkg/v3": "/fileutil", "google.golang.org/protobuf": "/reflect/protodesc",
		"github.com/prometheus/prometheus": "/tsdb/fileutil", "github.com/syndtr/goleveldb": "/leveldb",
		"k8s.io/apimachinery": "/pkg/util/net", "k8s.io/client-go": "/rest", "k8s.io/kubectl": "/pkg/util/term",
	}
	mod, uses := operatorMod, ""
	for _, o := range readTable(t) {
		if o.Folder == "" || o.Unless != "" {
			continue
		}
		pkg, ok := packages[o.Library]
		if !ok {
			t.Errorf("%s: has no package in this test", o.Library)
		}
		uses += fmt.Sprintf("\t_ %q\n", o.Library+pkg)
		if !strings.HasPrefix(o.Library, "k8s.io/") || o.Library == "k8s.io/kubectl" {
			v := o.Tested[len(o.Tested)-1]
			if o.Library == "k8s.io/kubectl" {
				v = o.Tested[0] // that of the stand-in's Kubernetes
			}
			downloaded(t, o.Library, v)
			mod += fmt.Sprintln("require", o.Library, v)
		}
	}
	r := checked(t, map[string]string{
		"go.mod": mod, "main.go": fineMain, "internal/controller/a.go": fineController,
		"internal/controller/b.go": "package controller\n\nimport (\n" + uses + ")\n",
	})
	if r.Fails() > 0 {
		t.Errorf("%+v", r.Findings)
	}
}
