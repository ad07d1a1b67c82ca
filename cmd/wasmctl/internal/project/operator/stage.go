// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// links is the folder, within a stage, of modules that are folders. Their paths are in the built
// module. As part of the stage, they do not depend on the machine.
const links = ".wasmctl"

// restTag is set for a program with clients of client-go.
const restTag = "wasmctl_rest"

// SDK is the source of the stand-in, if go.mod does not name it.
type SDK struct {
	// Checkout is a folder of wasmctl. Release is a version of it, "v1.2.3".
	Checkout, Release string
}

// Stage is a folder with a project in the form that is built.
type Stage struct {
	dir, pkg string
	own      string            // the program's build tags
	ldflags  string            // the program's flags for the linker
	pinned   map[string]string // versions that the project's replace lines or its vendor folder name
	vendored map[string]string // the versions of modules that are taken from the vendor folder
	required map[string]string // versions that the project requires, or pins
	zones    bool              // it loads time zones by name
	forms    []string          // tags for the forms of the stand-in that the program needs
	found    found             // the input of main in files

	overlay string // the file for go's -overlay; empty for none
	stderr  io.Writer

	conversions []Conversion

	// Capabilities are the rights that the program requests. Refused are the rules that no manifest
	// can request. Hint is advice about missing rights.
	Capabilities []abi.Capability
	Refused      []string
	Hint         string
}

// Stage makes dir a folder for go build: the project with the stand-in for controller-runtime.
func (p *Project) Stage(ctx context.Context, dir string, sdk SDK, stderr io.Writer) (*Stage, error) {
	s := &Stage{dir: dir, own: p.Tags, ldflags: p.LDFlags, pkg: "./" + filepath.ToSlash(p.Package), stderr: stderr, pinned: map[string]string{}, required: map[string]string{}}
	if err := linkRoot(p.Root, dir); err != nil {
		return nil, err
	}
	runtime, err := s.writeMod(ctx, p, sdk)
	if err != nil {
		return nil, err
	}
	packages, err := s.fit(ctx, runtime)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == "k8s.io/client-go/rest" }) {
		s.forms = append(s.forms, restTag)
	}
	if s.zones, err = anyMatches(packages, zoneByName); err != nil {
		return nil, err
	}
	rules, err := p.rules(packages)
	if err != nil {
		return nil, err
	}
	s.Capabilities, s.Refused = capabilities(rules, slices.ContainsFunc(packages, func(p pkg) bool { return p.ImportPath == runtimePath+"/pkg/metrics/filters" }))
	s.Hint = p.hint(s.Capabilities, s.Refused)
	if s.found.Objects, err = readObjects(p.Objects); err == nil {
		s.found.Webhooks, err = p.webhooks(packages)
	}
	if err == nil {
		s.conversions, err = conversions(packages)
	}
	return s, err
}

// fit changes the libraries that the program uses, and returns the packages that it then uses.
func (s *Stage) fit(ctx context.Context, runtime string) ([]pkg, error) {
	packages, err := s.complete(ctx)
	if err != nil {
		return nil, err
	}
	if runtime == "" {
		runtime = dirOf(packages, runtimePath)
	}
	table, err := readOverlays(runtime)
	if err != nil {
		return nil, err
	}
	late := map[string]bool{} // the program uses less of these once the others are changed
	for _, o := range table {
		late[o.Library] = late[o.Library] || o.Unless != ""
	}
	for _, l := range s.librariesOf(packages) {
		if !late[l.path] {
			if err := s.change(ctx, runtime, l, table, nil, nil); err != nil {
				return nil, err
			}
		}
	}
	if err := s.takeUnix(packages); err != nil {
		return nil, err
	}
	if packages, err = s.withOpenAPI(ctx); err != nil {
		return nil, err
	}
	unused := unusedBy(packages)
	reachable, err := reached(packages, unused[protobuf])
	if err != nil {
		return nil, err
	}
	for _, l := range s.librariesOf(packages) {
		if err := s.change(ctx, runtime, l, table, unused, reachable); err != nil {
			return nil, err
		}
	}
	return packages, nil
}

// withOpenAPI returns the packages of the program, which gets the real kube-openapi if it uses
// that itself.
func (s *Stage) withOpenAPI(ctx context.Context) ([]pkg, error) {
	packages, err := s.packages(ctx)
	if err != nil || !usesOpenAPI(packages) {
		return packages, err
	}
	for _, module := range []string{openAPI, "github.com/google/gnostic-models"} {
		edit := "-dropreplace=" + module
		if s.vendored[module] != "" {
			edit = "-replace=" + module + "=" + vendoredAt(module)
		}
		if err := s.command(ctx, s.stderr, "mod", "edit", edit); err != nil {
			return nil, err
		}
	}
	return s.complete(ctx)
}

// dirOf returns the folder of a module.
func dirOf(packages []pkg, module string) string {
	for i := range packages {
		if m := packages[i].Module; m != nil && m.Path == module {
			return m.Dir
		}
	}
	return ""
}

// Build builds the module. m is the input of main, and flags and ldflags are further flags.
func (s *Stage) Build(ctx context.Context, file string, m Main, flags []string, ldflags string) error {
	ofMain, err := m.linkerFlags(s.found)
	if err != nil {
		return err
	}
	ldflags += s.ldflags + ofMain
	if len(s.Capabilities) > 0 {
		text, err := json.Marshal(s.Capabilities)
		if err != nil {
			return err
		}
		ldflags += " -X '" + runtimePath + "/pkg/internal/rules.linked=" + string(text) + "'"
	}
	tags := s.tags()
	if s.zones {
		tags += "," + zonesTag
	}
	args := append([]string{"build", "-tags=" + tags}, flags...)
	args = append(args, "-ldflags="+ldflags, "-o", file, s.pkg)
	return s.command(ctx, s.stderr, args...)
}

// tags returns the build tags of the program, and those of the stand-in's API that it needs.
func (s *Stage) tags() string {
	return strings.Trim(strings.Join(append([]string{s.own}, s.forms...), ","), ",")
}

// writeSum writes go.sum, with the sums of the project and of the stand-in.
func (s *Stage) writeSum(root, runtime string) error {
	var all []byte
	for _, dir := range []string{root, runtime} {
		if dir == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		all = append(all, text...)
	}
	return os.WriteFile(filepath.Join(s.dir, "go.sum"), all, 0o644)
}

// command runs the go command in the stage.
func (s *Stage) command(ctx context.Context, stdout io.Writer, args ...string) error {
	if s.overlay != "" && (args[0] == "list" || args[0] == "build") {
		args = slices.Insert(slices.Clone(args), 1, "-overlay="+s.overlay)
	}
	return goCommand(ctx, s.dir, "mod", stdout, s.stderr, args...)
}

// goCommand runs the go command for modules in a folder. modules is the value of its flag -mod. The
// error is a goError.
func goCommand(ctx context.Context, dir, modules string, stdout, stderr io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, io.MultiWriter(stderr, &said)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOWORK=off", "GOFLAGS=-mod="+modules, "PWD="+dir)
	if err := cmd.Run(); err != nil {
		text := bytes.TrimSpace(said.Bytes())
		return &goError{fmt.Errorf("go %s: %w", args[0], err), string(text[max(0, len(text)-maxSaid):]), stderr != io.Discard}
	}
	return nil
}

// maxSaid is the maximum length of a command's output in an error.
const maxSaid = 2 << 10
