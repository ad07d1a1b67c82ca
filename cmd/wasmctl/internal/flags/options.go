// SPDX-License-Identifier: Apache-2.0

// Package flags converts flags of commands, and the file of controllers, into options of package
// wasmctl.
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
	"github.com/wasmctl/wasmctl/internal/atomicfile"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// Options returns the options of the flags. The caller of wasmctl.New sets the others.
func (o *Process) Options() wasmctl.Options {
	out := wasmctl.Options{Workers: o.workers, MemoryBudget: o.budgetBytes, TenantMemory: o.tenantBytes, StateDir: o.stateDir, Compile: o.Compile.compile(o.Harden), CacheCompression: o.compression == compressionOn}
	if l := &o.Leader; l.Replicates() {
		out.Election = &wasmctl.Election{Shards: l.Shards, Namespace: l.Namespace, Name: l.Name, LeaseDuration: l.lease, RenewDeadline: l.renew, RetryPeriod: l.retry, ExitOnLapse: l.lost == lostExit}
	}
	return out
}

// CacheDir returns the directory of compiled modules for a value of --cache-dir, or "" if there is no
// cache.
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

// CodeCache returns the cache of wasmctl run for a value of --cache-dir. If there is no cache or no key
// that wasmctl run would accept, dir is "".
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

// LeaseName returns the name of the Lease. controller is the name of the first controller.
func (o *Leader) LeaseName(controller string) string {
	return cmp.Or(o.Name, "wasmctl-"+controller)
}

// Options returns the options of a controller, from a spec and its files. triggerOn.stdin reads stdin.
// If dev is set and the spec has no grant, everything that the manifest requests is granted.
func Options(s *v1alpha1.ControllerSpec, files *Files, stdin io.Reader, dev bool) wasmctl.ControllerOptions {
	out := wasmctl.ControllerOptions{ControllerSpec: *s, Documents: files.Grant.File, Triggers: triggers(s.TriggerOn, stdin)}
	out.Config = Settings(s, files)
	switch {
	case s.GrantFile != "":
	case s.Grant == nil && dev:
		out.Grant = &v1alpha1.Grant{Manifest: true}
	case s.Grant.IsZero(): // --grant-manifest=false
		out.Grant = nil
	}
	if s.AuditFile != "" {
		out.Audit = func(grant []byte) error { return atomicfile.Replace(s.AuditFile, grant, 0o644) }
	}
	return out
}

// Files has the contents of the files that a spec names.
type Files struct {
	Settings v1alpha1.Config
	// SettingsText and GrantText are the contents of the files.
	SettingsText, GrantText []byte
	Grant                   plan.Grant
}

// ReadFiles reads the files of settings and grants. The file of an audit is written later: ReadFiles
// returns an error if that is impossible.
func ReadFiles(s *v1alpha1.ControllerSpec) (*Files, error) {
	f := &Files{}
	var err error
	if s.AuditFile != "" {
		if err := atomicfile.Check(s.AuditFile); err != nil {
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
		f.Grant, err = plan.ParseGrant(s.GrantFile, f.GrantText)
	}
	return f, err
}

// reason returns an error without the path, because the message already has it.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// ParseSettings parses a file of settings in YAML or JSON. Values are strings, numbers, true and false.
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

// Settings returns the settings of a spec, which take precedence, and of its file.
func Settings(s *v1alpha1.ControllerSpec, files *Files) v1alpha1.Config {
	values := maps.Clone(files.Settings)
	if values == nil {
		values = v1alpha1.Config{}
	}
	maps.Copy(values, s.Config)
	return values
}
