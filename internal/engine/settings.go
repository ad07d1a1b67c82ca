package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/near"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Configure gives the module other settings in the place of those of its options.
// Settings that it refuses leave the old ones in place. It returns the number of
// the settings in force.
func (c *Controller) Configure(ctx context.Context, settings map[string]string) (number int64, err error) {
	if c.rollout == nil {
		return 0, ErrNative
	}
	err = c.Do(ctx, func(ctx context.Context) (err error) {
		number, err = c.configure(ctx, settings, c.overrides)
		if err == nil {
			c.opts.Settings = settings // the loop's own
		}
		return err
	})
	return number, err
}

// Override changes settings over those of the options, until the controller ends;
// a nil value leaves one to the manifest. It returns the number of the settings in
// force.
func (c *Controller) Override(ctx context.Context, change map[string]*string) (number int64, err error) {
	if c.rollout == nil {
		return 0, ErrNative
	}
	err = c.Do(ctx, func(ctx context.Context) (err error) {
		if err := c.known(change); err != nil {
			return err
		}
		overrides := map[string]*string{}
		maps.Copy(overrides, c.overrides)
		maps.Copy(overrides, change)
		if number, err = c.configure(ctx, c.opts.Settings, overrides); err == nil {
			c.overrides = overrides
		}
		return err
	})
	return number, err
}

// known makes sure that the manifest has the settings that a user names, if it
// has any: others are misspelled. One that is set already may be unset.
func (c *Controller) known(change map[string]*string) error {
	has := c.Module.Manifest().Config
	values, _ := c.Module.Settings()
	names := slices.Sorted(maps.Keys(has))
	for _, key := range slices.Sorted(maps.Keys(change)) {
		_, ok := has[key]
		if _, isSet := values[key]; ok || len(has) == 0 || isSet && change[key] == nil {
			continue
		}
		meant := "want one of"
		if word := near.Word(key, names); word != "" {
			meant = "did you mean " + word + "? want one of"
		}
		return admin.Invalid(fmt.Errorf("controller[%s]: %s: unknown setting; %s %s", c.name, key, meant, strings.Join(names, ", ")))
	}
	return nil
}

// configure gives the module new settings, and reconciles all objects with
// them. It returns the number of the settings.
func (c *Controller) configure(ctx context.Context, settings map[string]string, overrides map[string]*string) (int64, error) {
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
		return before, err
	}
	_, number := c.Module.Settings()
	if number == before {
		return number, nil
	}
	c.rollout.Configure(ctx)
	n := c.Runtime.TriggerAll(ctx, abi.ReasonConfigChanged)
	c.log.Info("settings changed", "config_gen", number, "triggered", n, "controller", c.name)
	c.warnSettings()
	return number, nil
}

// warnSettings names the settings that the manifest does not have: most
// probably they are misspelled. A manifest without settings says nothing of
// them.
func (c *Controller) warnSettings() {
	values, _ := c.Module.Settings()
	has := c.Module.Manifest().Config
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := has[key]; !ok && len(has) > 0 {
			c.log.Warn("the module's manifest does not declare this setting", "setting", key,
				"has", strings.Join(slices.Sorted(maps.Keys(has)), ", "), "controller", c.name)
		}
	}
}
