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

	semver "k8s.io/apimachinery/pkg/util/version"
)

// goMod is what go mod edit -json prints.
type goMod struct {
	Require []version
	Replace []struct{ Old, New version }
}

// version is a module, and the version of it if one is meant.
type version struct{ Path, Version string }

// String is as go mod edit takes it.
func (v version) String() string {
	if v.Version == "" {
		return v.Path
	}
	return v.Path + "@" + v.Version
}

// writeMod writes go.mod and go.sum, and returns the folder of the stand-in if
// that is one.
func (s *Stage) writeMod(ctx context.Context, root string, sdk SDK) (runtime string, err error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
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
	replaced, err := s.folders(ctx, root, mod)
	if err != nil {
		return "", err
	}
	s.age(mod)
	runtime, err = s.standIn(ctx, replaced, sdk)
	if err != nil {
		return "", err
	}
	return runtime, s.writeSum(root, runtime)
}

// folders makes the replace lines of go.mod, which are relative to root, fit the
// stage. It returns the folders that stand for modules.
func (s *Stage) folders(ctx context.Context, root string, mod goMod) (map[string]string, error) {
	dirs := map[string]string{}
	for _, r := range mod.Replace {
		dir := r.New.Path
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		_, missing := os.Stat(filepath.Join(dir, "go.mod"))
		var err error
		if r.Old.Version != "" { // a line for all versions would not win over it
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

// unreplace takes a module from the registry whose folder is not there: a module that
// was downloaded has none of the modules in its folders.
func (s *Stage) unreplace(ctx context.Context, mod goMod, module, dir string) error {
	for _, r := range mod.Require {
		if r.Path == module && !strings.HasPrefix(r.Version, "v0.0.0-0001") { // go mod tidy has made that one up
			_, _ = fmt.Fprintf(s.stderr, "wasmctl: go.mod replaces %s by %s, where there is no module: the build takes %s\n", module, dir, r)
			return s.command(ctx, s.stderr, "mod", "edit", "-dropreplace="+module)
		}
	}
	return fmt.Errorf("go.mod: replaces %s by %s, where there is no module: get the whole repository, or that module into this folder", module, dir)
}

// standIn adds the stand-in, and what that replaces, to go.mod where it has them
// not.
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
		err = errors.New("go.mod: requires " + runtimePath + ", which a module cannot use as it is: name a checkout of wasmctl with --sdk, for what stands in for it")
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
			if err := s.command(ctx, s.stderr, "mod", "edit", "-dropreplace="+r.Path); err != nil {
				return "", err
			}
		}
	}
	for _, r := range own.Replace { // those of the main module count only
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

// replace makes a folder the module of that path.
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

// linkOf names the link to a module's folder: by its path, but for one whose path is within
// that of another, or around it. A link is no folder for links.
func (s *Stage) linkOf(module string) string {
	for at := module; at != "."; at = path.Dir(at) {
		info, err := os.Lstat(filepath.Join(s.dir, links, filepath.FromSlash(at)))
		if err == nil && (at == module || info.Mode()&fs.ModeSymlink != 0) {
			return strings.ReplaceAll(module, "/", "_")
		}
	}
	return module
}

// point makes go.mod use what has that name in the folder of links.
func (s *Stage) point(ctx context.Context, module, name string) error {
	return s.command(ctx, s.stderr, "mod", "edit", "-replace="+module+"=./"+links+"/"+name)
}

// older reports whether a version that a project pins is too old for the stand-in.
func older(pinned, needed string) bool {
	a, errA := semver.ParseSemantic(pinned)
	b, errB := semver.ParseSemantic(needed)
	return errA == nil && errB == nil && a.LessThan(b)
}
