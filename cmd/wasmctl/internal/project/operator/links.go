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

// linkFiles makes the folder dst, with the files of the module in src, those of Go as
// symbolic links. Tests are left out, and what drop reports.
func linkFiles(src, dst string, drop func(rel string) bool) error {
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
		case strings.HasSuffix(name, "_test.go"), drop(filepath.ToSlash(rel)):
			return nil
		case strings.HasSuffix(name, ".go"), name == "go.mod":
			return os.Symlink(path, filepath.Join(dst, rel))
		}
		return copyFile(path, filepath.Join(dst, rel)) // a link cannot be embedded
	})
}

// change is what a module needs to be otherwise in a library: without the files
// that drop reports, with those of the folder add of the stand-in, and with other
// functions.
type change struct {
	module string
	drop   func(rel string) bool
	add    string
	edits  []edit
}

// libraries are changed first: less of Kubernetes is used then.
var libraries = []change{
	{"k8s.io/client-go", connections, "clientgo", inCluster},
	{"github.com/sirupsen/logrus", only("terminal_check_wasip1.go"), "logrus", nil},
	{"github.com/moby/term", terminal, "mobyterm", nil},
	{"github.com/google/go-cmp", only("cmp/internal/value/name.go"), "gocmp", nil},
	{"google.golang.org/protobuf", only("internal/descfmt/stringer.go"), "protobuf", nil},
	{"github.com/hashicorp/go-sockaddr", none, "sockaddr", nil},
	{"github.com/coreos/go-systemd/v22", only("journal/journal_unix.go"), "systemd", nil},
	{"go.etcd.io/etcd/client/pkg/v3", only("fileutil/lock_flock.go"), "etcd", nil},
	{"github.com/lib/pq", none, "libpq", nil},
	{"github.com/AthenZ/athenz", none, "athenz", nil},
	{"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", none, "azblob", nil},
	{"github.com/aliyun/credentials-go", only("credentials/providers/lock_unix.go"), "aliyun", nil},
	{"k8s.io/kubectl", only("pkg/util/term/resizeevents.go"), "kubectl", nil},
	{"github.com/open-policy-agent/cert-controller", code, "certcontroller", nil},
}

func none(string) bool { return false }

// only reports one file: one that does not compile for wasip1, or that asks for methods of
// types by reflection, for a text that is for people. That would keep all methods of all
// types in the program.
func only(file string) func(rel string) bool {
	return func(rel string) bool { return rel == file }
}

// terminal reports the files of moby/term that differ between systems, or name those.
func terminal(rel string) bool { return strings.HasPrefix(rel, "term") }

// code reports the files of a module that is replaced as a whole.
func code(rel string) bool { return rel != "go.mod" }

// docs reports the files of k8s.io/api that have the texts of fields, for who publishes an
// API: maps that each start of a program fills. kubectl's libraries read those of
// apimachinery.
func docs(rel string) bool { return strings.HasSuffix(rel, "swagger_doc_generated.go") }

// protobuf reports the files that only encode protobuf.
func protobuf(rel string) bool { return strings.HasSuffix(rel, ".pb.go") }

// unspoken reports the files of k8s.io/api that a module does not need: docs, and what
// encodes protobuf, which it does not speak. Without these a program that uses protobuf
// elsewhere, as all do that have metrics, does not keep the code for each kind.
func unspoken(rel string) bool { return docs(rel) || protobuf(rel) }

// connections reports the files of client-go that bring connections to the API
// server into programs that do not connect: package clientgo of the stand-in has
// others.
func connections(rel string) bool {
	if strings.HasPrefix(rel, "plugin/pkg/client/auth/exec/") {
		return false // package rest needs it
	}
	for _, dir := range []string{"plugin/pkg/client/auth/", "tools/record/", "tools/events/"} {
		if strings.HasPrefix(rel, dir) {
			return true
		}
	}
	return rel == "applyconfigurations/meta/v1/unstructured.go"
}

// linkRoot makes the folder dst, with what is in the project as symbolic links,
// but for what says how to build it. What the package there embeds is copied.
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
