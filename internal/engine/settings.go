// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/suggest"
)

// setSettings replaces the settings of the options. misfit is the error of a canary that
// refuses them. Only the loop calls it.
func (c *Controller) setSettings(ctx context.Context, settings map[string]string) (number int64, misfit, err error) {
	number, misfit, err = c.configure(ctx, settings, c.overrides)
	if err == nil {
		c.opts.Settings = settings
	}
	return number, misfit, err
}

// override changes settings on top of those of the options. Only the loop calls it.
func (c *Controller) override(ctx context.Context, change map[string]*string) (number int64, misfit, err error) {
	if err := c.known(change); err != nil {
		return 0, nil, err
	}
	overrides := map[string]*string{}
	maps.Copy(overrides, c.overrides)
	maps.Copy(overrides, change)
	if number, misfit, err = c.configure(ctx, c.opts.Settings, overrides); err == nil {
		c.overrides = overrides
	}
	return number, misfit, err
}

// known returns an error if a user names a setting that is not in the manifest, which is
// probably a spelling mistake. A setting that is set may be unset in any case.
func (c *Controller) known(change map[string]*string) error {
	values, _ := c.Module.Settings()
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if _, isSet := values[key]; isSet && change[key] == nil {
			continue
		}
		if err := c.knownSetting(key); err != nil {
			return failure.Usage.Wrap(err)
		}
	}
	return nil
}

// knownSetting returns an error if the manifest, if there is one, lacks the setting.
func (c *Controller) knownSetting(key string) error {
	m := c.Module.Manifest()
	if m.Name == "" {
		return nil
	}
	if err := KnownSetting(m, key); err != nil {
		return fmt.Errorf("controller[%s]: %w", c.name, err)
	}
	return nil
}

// KnownSetting returns an error if the manifest lacks the setting. The error lists the
// settings that exist.
func KnownSetting(m *abi.Manifest, key string) error {
	if _, ok := m.Config[key]; ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(m.Config))
	meant := "the manifest has none (config)"
	if word := suggest.Word(key, names); word != "" {
		meant = "did you mean " + word + "? want one of " + strings.Join(names, ", ")
	} else if len(names) > 0 {
		meant = "want one of " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s: unknown setting; %s", key, meant)
}

// checkSettings returns an error if the options have settings that the first manifest
// lacks. Unknown settings in a file that changes later only cause a warning: they may be
// for a module that has not been swapped in yet.
func (c *Controller) checkSettings() error {
	for _, key := range slices.Sorted(maps.Keys(c.opts.Settings)) {
		if err := c.knownSetting(key); err != nil {
			return failure.Usage.Wrap(err)
		}
	}
	return nil
}

// configure gives the module new settings, and reconciles all objects with them. It returns
// the number of the settings, and the error of a canary that refuses them.
func (c *Controller) configure(ctx context.Context, settings map[string]string, overrides map[string]*string) (number int64, misfit, err error) {
	_, before := c.Module.Settings()
	values := map[string]string{}
	maps.Copy(values, settings)
	for key, value := range overrides {
		if value == nil {
			delete(values, key)
		} else {
			values[key] = *value
		}
	}
	if err := c.Module.Configure(ctx, values); err != nil {
		return before, nil, err
	}
	if _, number = c.Module.Settings(); number == before {
		return number, nil, nil
	}
	misfit = c.rollout.Configure(ctx)
	n := c.Runtime.TriggerAll(ctx, abi.ReasonConfigChanged)
	c.log.Info("settings applied", "config_gen", number, "triggered", n, "controller", c.name)
	c.warnSettings()
	return number, misfit, nil
}

// warnSettings logs a warning for each setting that the manifest lacks, which is probably a
// spelling mistake.
func (c *Controller) warnSettings() {
	values, _ := c.Module.Settings()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := c.knownSetting(key); err != nil {
			c.log.Warn("unknown setting", "error", err.Error(), "controller", c.name)
		}
	}
}
