package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/abi/near"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// maxSettings is how large a file of settings may be, in bytes.
const maxSettings = 1 << 20

// settings returns what --config-file and --config say; --config wins. content
// is that of the file.
func (o *controllerOptions) settings(content []byte) (map[string]string, error) {
	values := map[string]string{}
	if o.configFile != "" {
		var file map[string]any
		if err := yaml.UnmarshalStrict(content, &file); err != nil {
			return nil, fmt.Errorf("--config-file %s: %w", o.configFile, err)
		}
		for _, key := range slices.Sorted(maps.Keys(file)) {
			switch v := file[key].(type) {
			case map[string]any, []any, nil:
				return nil, fmt.Errorf("--config-file %s: %s: want a string, a number or true or false", o.configFile, key)
			default:
				values[key] = strings.TrimSpace(fmt.Sprint(v))
			}
		}
	}
	maps.Copy(values, o.config)
	return values, nil
}

// readSettings reads the file of settings, if there is one, and returns the
// settings too.
func (o *controllerOptions) readSettings() (content []byte, values map[string]string, err error) {
	if o.configFile != "" {
		if content, err = os.ReadFile(o.configFile); err != nil {
			return nil, nil, withCode(exitUsage, fmt.Errorf("--config-file: %w", err))
		}
	}
	values, err = o.settings(content)
	return content, values, withCode(exitUsage, err)
}

// settings returns the settings of file and flags, under those of overrides.
func (s *session) settings(content []byte, overrides map[string]*string) (map[string]string, error) {
	values, err := s.opts.settings(content)
	if err != nil {
		return nil, err
	}
	for key, value := range overrides {
		if value == nil {
			delete(values, key)
		} else {
			values[key] = *value
		}
	}
	return values, nil
}

// watchSettings gives the module its settings anew whenever their file changes,
// until ctx ends. Settings that the module refuses leave the old ones in place.
func (s *session) watchSettings(ctx context.Context, content []byte) {
	file := filewatch.File{
		Path: s.opts.configFile, Content: content, MaxSize: maxSettings,
		OnChange: func(ctx context.Context, content []byte) {
			_ = s.do(ctx, func(ctx context.Context) error { s.configureFile(ctx, content); return nil })
		},
		OnError: func(err error) {
			s.log.Warn("settings cannot be read; the old ones stay", "error", err.Error(), "controller", s.name)
		},
	}
	_ = file.Run(ctx) // its error has been told to OnError
}

// configureFile gives the module the settings of a file that has changed.
func (s *session) configureFile(ctx context.Context, content []byte) {
	switch _, err := s.configure(ctx, content, s.overrides); {
	case errors.Is(err, host.ErrRefused):
		s.log.Warn("the module refuses the new settings; the old ones stay", "error", err.Error(), "controller", s.name)
	case err != nil:
		s.log.Warn("settings cannot be used; the old ones stay", "error", err.Error(), "controller", s.name)
	default:
		s.settingsFile = content
	}
}

// override changes settings over those of file and flags, until the process
// ends; a nil value leaves it to the manifest. It returns the number of the
// settings.
func (s *session) override(ctx context.Context, change map[string]*string) (int64, error) {
	overrides := maps.Clone(s.overrides)
	if overrides == nil {
		overrides = map[string]*string{}
	}
	if err := s.known(change); err != nil {
		return s.settingsNumber(), err
	}
	maps.Copy(overrides, change)
	gen, err := s.configure(ctx, s.settingsFile, overrides)
	if err == nil {
		s.overrides = overrides
	}
	return gen, err
}

// known makes sure that the manifest has the settings that a user names, if it
// has any: others are misspelt. One that is set already may be unset.
func (s *session) known(change map[string]*string) error {
	has := s.module.Manifest().Config
	values, _ := s.module.Settings()
	names := slices.Sorted(maps.Keys(has))
	for _, key := range slices.Sorted(maps.Keys(change)) {
		_, ok := has[key]
		if _, isSet := values[key]; ok || len(has) == 0 || isSet && change[key] == nil {
			continue
		}
		err := fmt.Errorf("controller[%s]: %s: the module has no such setting; it has %s", s.name, key, strings.Join(names, ", "))
		if word := near.Word(key, names); word != "" {
			err = fmt.Errorf("controller[%s]: %s: the module has no such setting; did you mean %s? It has %s", s.name, key, word, strings.Join(names, ", "))
		}
		return admin.Invalid(err)
	}
	return nil
}

// configure gives the module new settings, and reconciles all objects with
// them. It returns the number of the settings.
func (s *session) configure(ctx context.Context, content []byte, overrides map[string]*string) (int64, error) {
	_, before := s.module.Settings()
	values, err := s.settings(content, overrides)
	if err == nil {
		err = s.module.Configure(ctx, values)
	}
	if err != nil {
		return before, err
	}
	_, gen := s.module.Settings()
	if gen == before {
		return gen, nil
	}
	if s.canary != nil {
		if err := s.canary.candidate.Configure(ctx); err != nil {
			s.endCanary(ctx, canaryFailed, err.Error())
		}
	}
	n := s.controller.TriggerAll(ctx, abi.ReasonConfigChanged)
	s.log.Info("settings changed", "config_gen", gen, "triggered", n, "controller", s.name)
	s.warnSettings()
	return gen, nil
}
