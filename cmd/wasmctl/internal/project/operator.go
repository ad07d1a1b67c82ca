package project

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What an operator imports, and what stands in for it in a module.
const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	linkedRules       = controllerRuntime + "/pkg/internal/rules.linked"
)

// operatorFlags returns what building an operator, a project that uses
// controller-runtime, needs besides the flags of every module, and the linker
// flag with its rights; nothing for other projects. It writes to the folder tmp.
func (p goProject) operatorFlags(ctx context.Context, tmp string) (flags []string, linker string, err error) {
	mod, err := p.module(ctx)
	if err != nil || !mod.requires(controllerRuntime) {
		return nil, "", err
	}
	rights, err := operatorRights(mod.root)
	if err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(rights)
	if err != nil {
		return nil, "", err
	}
	linker = fmt.Sprintf(" -X '%s=%s'", linkedRules, text)
	if mod.replaces(controllerRuntime) {
		return nil, linker, nil
	}
	file, err := mod.withStandIn(ctx, p.sdk, tmp)
	return []string{"-modfile=" + file, "-mod=mod"}, linker, err
}

// modFile is what go mod edit -json prints of a go.mod, as far as it is needed.
type modFile struct {
	root    string // its folder
	Require []struct{ Path string }
	Replace []replacement
}

type replacement struct{ Old, New struct{ Path string } }

// module reads the go.mod of the project.
func (p goProject) module(ctx context.Context) (*modFile, error) {
	at := command{dir: p.dir, name: "go", args: []string{"env", "GOMOD"}}
	file, err := at.output(ctx)
	if err != nil {
		return nil, err
	}
	return readModFile(ctx, file)
}

func readModFile(ctx context.Context, file string) (*modFile, error) {
	var out, problem bytes.Buffer
	m := &modFile{root: filepath.Dir(file)}
	edit := command{dir: m.root, name: "go", args: []string{"mod", "edit", "-json", file}}
	if err := edit.run(ctx, &out, &problem); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return m, json.Unmarshal(out.Bytes(), m)
}

func (m *modFile) requires(path string) bool {
	return slices.ContainsFunc(m.Require, func(r struct{ Path string }) bool { return r.Path == path })
}

func (m *modFile) replaces(path string) bool {
	return slices.ContainsFunc(m.Replace, func(r replacement) bool { return r.Old.Path == path })
}

// withStandIn writes a copy of the go.mod that replaces controller-runtime, and what
// its stand-in replaces: only the replacements of the main module count.
func (m *modFile) withStandIn(ctx context.Context, checkout, tmp string) (string, error) {
	if checkout == "" {
		return "", fmt.Errorf("go.mod: it requires %s, which a module cannot use as it is: name a checkout of wasmctl with --sdk, for what stands in for it", controllerRuntime)
	}
	standIn, err := filepath.Abs(filepath.Join(checkout, "guest-sdk", "controller-runtime"))
	if err != nil {
		return "", err
	}
	own, err := readModFile(ctx, filepath.Join(standIn, "go.mod"))
	if err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(m.root, name))
		if err != nil && name == "go.mod" {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o600); err != nil {
			return "", err
		}
	}
	file := filepath.Join(tmp, "go.mod")
	args := []string{"mod", "edit", "-replace=" + controllerRuntime + "=" + standIn}
	for _, r := range own.Replace {
		args = append(args, "-replace="+r.Old.Path+"="+filepath.Join(standIn, r.New.Path))
	}
	edit := command{dir: m.root, name: "go", args: append(args, file)}
	_, err = edit.output(ctx)
	return file, err
}
