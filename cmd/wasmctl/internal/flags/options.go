// Package flags joins flags of commands, and the file of controllers, with the
// options of package wasmctl.
package flags

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Options are what the flags say of the process; New's caller sets the rest.
func (o *Process) Options() wasmctl.Options {
	out := wasmctl.Options{Workers: o.workers, MemoryBudget: o.budgetBytes, StateDir: o.stateDir, Compile: o.Compile.compile(o.Harden), CacheCompression: o.compression == compressionOn}
	if l := &o.Leader; l.Replicates() {
		out.Election = &wasmctl.Election{Shards: l.Shards, Namespace: l.Namespace, Name: l.Name, LeaseDuration: l.lease, RenewDeadline: l.renew, RetryPeriod: l.retry}
	}
	return out
}

// CacheDir returns where compiled modules are kept, or "" with the reason why
// they are not.
func (o *Process) CacheDir() (string, error) { return CacheDir(o.cacheDir) }

// CodeCache is CodeCache for its --cache-dir.
func (o *Process) CodeCache() (dir string, key []byte) { return CodeCache(o.cacheDir) }

// CacheDir is Process.CacheDir for a value of --cache-dir.
func CacheDir(value string) (string, error) {
	switch value {
	case "none":
		return "", nil
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("set a directory with --cache-dir: %w", err)
		}
		return filepath.Join(dir, "wasmctl", "modules"), nil
	}
	return value, nil
}

// CodeCache returns the cache that wasmctl run has with a value of --cache-dir; dir is ""
// where it has none, or could not take what is put into it.
func CodeCache(value string) (dir string, key []byte) {
	dir, err := CacheDir(value)
	if err == nil && dir != "" {
		key, err = CacheKey()
	}
	if err != nil {
		return "", nil
	}
	return dir, key
}

// LeaseName returns the name of the Lease; controller is the first controller's.
func (o *Leader) LeaseName(controller string) string {
	return cmp.Or(o.Name, "wasmctl-"+controller)
}

// Options returns what a spec and the files that it names say of a controller. Stdin is
// what triggerOn.stdin reads. With dev, the module's manifest is granted if the spec has
// no grant.
func Options(s *v1alpha1.ControllerSpec, files *Files, stdin io.Reader, dev bool) wasmctl.ControllerOptions {
	out := wasmctl.ControllerOptions{ControllerSpec: *s, Grants: files.Grant, Triggers: triggers(s.TriggerOn, stdin)}
	out.Config = Settings(s, files)
	switch {
	case s.GrantFile != "":
	case s.Grant == nil && dev:
		out.Grant = &v1alpha1.Grant{Manifest: true}
	case s.Grant.IsZero(): // --grant-manifest=false
		out.Grant = nil
	}
	if s.AuditFile != "" {
		out.Audit = func(grant []byte) error { return project.ReplaceFile(s.AuditFile, grant) }
	}
	return out
}

// Files are those that the spec of a controller names.
type Files struct {
	Settings v1alpha1.Config
	// SettingsText and GrantText are the contents.
	SettingsText, GrantText []byte
	Grant                   wasmctl.Grant
}

// ReadFiles reads the files of settings and of grants. That of an audit is written
// later: the error may be that it cannot be.
func ReadFiles(s *v1alpha1.ControllerSpec) (*Files, error) {
	f := &Files{}
	var err error
	if s.AuditFile != "" {
		if err := project.CanReplace(s.AuditFile); err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--audit %s: cannot be written: %w", s.AuditFile, reason(err)))
		}
	}
	if s.ConfigFile != "" {
		if f.SettingsText, err = readFile(s.ConfigFile, MaxNamed); err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--config-file: %w", err))
		}
		if f.Settings, err = ParseSettings(s.ConfigFile, f.SettingsText); err != nil {
			return nil, err
		}
	}
	if s.GrantFile != "" {
		if f.GrantText, err = readFile(s.GrantFile, MaxNamed); err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--grant %s: %w", s.GrantFile, reason(err)))
		}
		f.Grant, err = wasmctl.ParseGrant(s.GrantFile, f.GrantText)
	}
	return f, err
}

// reason is an error without the path, which the message names already.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// ParseSettings reads a file of settings in YAML or JSON: strings, numbers, true and
// false.
func ParseSettings(path string, content []byte) (v1alpha1.Config, error) {
	var values v1alpha1.Config
	err := yaml.UnmarshalStrict(content, &values)
	if err == nil {
		_, err = values.Texts()
	}
	if err != nil {
		return nil, failure.Usage.Wrap(fmt.Errorf("--config-file %s: %w", path, err))
	}
	return values, nil
}

// Settings returns the settings of a spec, over those of its file.
func Settings(s *v1alpha1.ControllerSpec, files *Files) v1alpha1.Config {
	values := maps.Clone(files.Settings)
	if values == nil {
		values = v1alpha1.Config{}
	}
	maps.Copy(values, s.Config)
	return values
}
