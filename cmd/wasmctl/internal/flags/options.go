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
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host/kubeapi"
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

// Options are what the flags and the files that they name say of a controller.
// Stdin is what --trigger-on-stdin reads. With dev the module's manifest is
// granted where no file says otherwise.
func (o *Controller) Options(files *Files, stdin io.Reader, dev bool) (wasmctl.ControllerOptions, error) {
	triggers, err := o.triggers(stdin)
	if err != nil {
		return wasmctl.ControllerOptions{}, failure.Usage.Wrap(err)
	}
	r, out := &o.Rights, o.ControllerOptions
	memory, timeout := out.Limits.Memory, out.Limits.Timeout
	out.Limits = o.limit.parsed
	out.Limits.Memory, out.Limits.Timeout, out.Limits.Fuel = memory, timeout, o.fuel.limitN
	out.FuelRate, out.Reconcile = o.fuel.rateN, wasmctl.Reconcile(o.reconcileOnSwap)
	out.Grant, out.As, out.DryRun = files.Grant, r.As, kubeapi.DryRun(r.DryRun)
	out.Settings, out.Triggers = o.AllSettings(files), triggers
	if r.GrantManifest || dev && r.GrantFile == "" {
		out.Grant = wasmctl.GrantManifest
	}
	if r.Audit != "" {
		out.Audit = func(grant []byte) error { return project.ReplaceFile(r.Audit, grant) }
	}
	return out, nil
}

// Files are those that the flags of a controller name.
type Files struct {
	Settings map[string]string
	// SettingsText and GrantText are the contents.
	SettingsText, GrantText []byte
	Grant                   wasmctl.Grant
}

// ReadFiles reads the files of settings and of grants. That of an audit is written
// later: the error may be that it cannot be.
func (o *Controller) ReadFiles() (*Files, error) {
	f := &Files{}
	var err error
	if o.Rights.Audit != "" {
		if err := project.CanReplace(o.Rights.Audit); err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--audit %s: cannot be written: %w", o.Rights.Audit, reason(err)))
		}
	}
	if o.ConfigFile != "" {
		if f.SettingsText, err = readFile(o.ConfigFile, MaxNamed); err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--config-file: %w", err))
		}
		if f.Settings, err = o.ParseSettings(f.SettingsText); err != nil {
			return nil, err
		}
	}
	if o.Rights.GrantFile != "" {
		if f.GrantText, err = readFile(o.Rights.GrantFile, MaxNamed); err != nil {
			return nil, failure.Usage.Wrap(fmt.Errorf("--grant %s: %w", o.Rights.GrantFile, reason(err)))
		}
		f.Grant, err = wasmctl.ParseGrant(o.Rights.GrantFile, f.GrantText)
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

// ParseSettings reads the content of the file of settings.
func (o *Controller) ParseSettings(content []byte) (map[string]string, error) {
	values, err := ParseSettings(content)
	if err != nil {
		return nil, failure.Usage.Wrap(fmt.Errorf("--config-file %s: %w", o.ConfigFile, err))
	}
	return values, nil
}

// ParseSettings reads settings in YAML or JSON: strings, numbers, true and false.
func ParseSettings(content []byte) (map[string]string, error) {
	var file map[string]any
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		switch v := file[key].(type) {
		case map[string]any, []any, nil:
			return nil, fmt.Errorf("%s: want a string, a number or true or false", key)
		default:
			values[key] = strings.TrimSpace(fmt.Sprint(v))
		}
	}
	return values, nil
}

// AllSettings are those of --config over those of the file.
func (o *Controller) AllSettings(files *Files) map[string]string {
	values := map[string]string{}
	maps.Copy(values, files.Settings)
	maps.Copy(values, o.Config)
	return values
}
