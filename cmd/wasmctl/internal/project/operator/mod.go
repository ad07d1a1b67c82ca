// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// goMod is the output of go mod edit -json.
type goMod struct {
	Require []version
	Replace []replacement
}

// replacement is a replace line.
type replacement struct{ Old, New version }

// version is a module, with a version or without.
type version struct{ Path, Version string }

// String returns the form that go mod edit accepts.
func (v version) String() string {
	if v.Version == "" {
		return v.Path
	}
	return v.Path + "@" + v.Version
}

// writeMod writes go.mod and go.sum. It returns the folder of the stand-in, or "" if the stand-in
// comes from the registry.
func (s *Stage) writeMod(ctx context.Context, p *Project, sdk SDK) (runtime string, err error) {
	text, err := os.ReadFile(filepath.Join(p.Root, "go.mod"))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "go.mod"), text, 0o644)
	}
	if err != nil {
		return "", err
	}
	mod, err := s.readMod(ctx, filepath.Join(s.dir, "go.mod"))
	if err != nil {
		return "", err
	}
	if mod.Replace, err = s.useVendored(ctx, p, mod); err != nil {
		return "", err
	}
	replaced, err := s.folders(ctx, p.Root, mod)
	if err != nil {
		return "", err
	}
	s.age(mod)
	runtime, err = s.standIn(ctx, replaced, sdk)
	if err != nil {
		return "", err
	}
	return runtime, s.writeSum(p.Root, runtime)
}

// folders adapts the replace lines of go.mod, which are relative to root, to the stage. It returns
// the folders that replace modules.
func (s *Stage) folders(ctx context.Context, root string, mod goMod) (map[string]string, error) {
	dirs := map[string]string{}
	for _, r := range mod.Replace {
		dir := r.New.Path
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		_, missing := os.Stat(filepath.Join(dir, "go.mod"))
		var err error
		if r.Old.Version != "" { // a line for all versions would not override it
			err = s.command(ctx, s.stderr, "mod", "edit", "-dropreplace="+r.Old.String(), "-replace="+r.Old.Path+"="+r.New.String())
		}
		switch {
		case err != nil:
		case r.New.Version != "":
			s.pinned[r.Old.Path] = r.New.Version
		case errors.Is(missing, fs.ErrNotExist):
			err = s.unreplace(ctx, mod, r.Old.Path, r.New.Path)
		default:
			dirs[r.Old.Path] = dir
			err = s.replace(ctx, r.Old.Path, dir)
		}
		if err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

// unreplace takes a module from the registry if its folder is missing. A downloaded module does not
// include the modules in its folders.
func (s *Stage) unreplace(ctx context.Context, mod goMod, module, dir string) error {
	for _, r := range mod.Require {
		if r.Path == module && !strings.HasPrefix(r.Version, "v0.0.0-0001") { // go mod tidy invents this version
			_, _ = fmt.Fprintf(s.stderr, "wasmctl: go.mod replaces %s by %s, which has no module: the build uses %s\n", module, dir, r)
			return s.command(ctx, s.stderr, "mod", "edit", "-dropreplace="+module)
		}
	}
	return fmt.Errorf("go.mod: replaces %s by %s, which has no module: get the whole repository, or put the module into this folder", module, dir)
}

// standIn adds the stand-in, and the modules that it replaces, to go.mod.
func (s *Stage) standIn(ctx context.Context, replaced map[string]string, sdk SDK) (runtime string, err error) {
	runtime, has := replaced[runtimePath]
	switch {
	case has:
	case sdk.Checkout != "":
		if runtime, err = filepath.Abs(filepath.Join(sdk.Checkout, "guest-sdk", "controller-runtime")); err == nil {
			err = s.replace(ctx, runtimePath, runtime)
		}
	case sdk.Release != "":
		at := "github.com/wasmctl/wasmctl/guest-sdk/controller-runtime@" + sdk.Release
		return "", s.command(ctx, s.stderr, "mod", "edit", "-replace="+runtimePath+"="+at, "-replace="+sdkPath+"="+sdkPath+"@"+sdk.Release)
	default:
		err = errors.New("go.mod: requires " + runtimePath + ", which a module cannot use as it is: name a checkout of wasmctl with --sdk, for the module that stands in for it")
	}
	if err != nil {
		return "", err
	}
	own, err := s.readMod(ctx, filepath.Join(runtime, "go.mod"))
	if err != nil {
		return "", err
	}
	for _, r := range own.Require {
		if older(s.pinned[r.Path], r.Version) {
			delete(s.vendored, r.Path)
			if err := s.command(ctx, s.stderr, "mod", "edit", "-dropreplace="+r.Path); err != nil {
				return "", err
			}
		}
	}
	for _, r := range own.Replace { // only those of the main module have an effect
		if _, has := replaced[r.Old.Path]; !has {
			if err := s.replace(ctx, r.Old.Path, filepath.Join(runtime, r.New.Path)); err != nil {
				return "", err
			}
		}
	}
	return runtime, nil
}

func (s *Stage) readMod(ctx context.Context, file string) (goMod, error) {
	var out bytes.Buffer
	var mod goMod
	err := s.command(ctx, &out, "mod", "edit", "-json", file)
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &mod)
	}
	if err != nil {
		return mod, fmt.Errorf("%s: %w", file, err)
	}
	return mod, nil
}

// replace makes a folder stand for a module.
func (s *Stage) replace(ctx context.Context, module, dir string) error {
	name := s.linkOf(module)
	at := filepath.Join(s.dir, links, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(dir, at); err != nil {
		return err
	}
	return s.point(ctx, module, name)
}

// linkOf names the link to a module's folder after the module's path. If that path is within
// another link's, or contains it, the name is one element: a link cannot contain links.
func (s *Stage) linkOf(module string) string {
	for at := module; at != "."; at = path.Dir(at) {
		info, err := os.Lstat(filepath.Join(s.dir, links, filepath.FromSlash(at)))
		if err == nil && (at == module || info.Mode()&fs.ModeSymlink != 0) {
			return strings.ReplaceAll(module, "/", "_")
		}
	}
	return module
}

// point makes go.mod use an entry of the folder of links for a module.
func (s *Stage) point(ctx context.Context, module, name string) error {
	return s.command(ctx, s.stderr, "mod", "edit", "-replace="+module+"=./"+links+"/"+name)
}

// older reports whether the first version is older than the second. It is false if one of them is
// not a version.
func older(pinned, needed string) bool {
	a, errA := semver.NewVersion(pinned)
	b, errB := semver.NewVersion(needed)
	return errA == nil && errB == nil && a.LessThan(b)
}
