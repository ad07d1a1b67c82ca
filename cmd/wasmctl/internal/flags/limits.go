package flags

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
)

// fuel has the flags that bound the work of a module.
type fuel struct {
	limit, rate   string
	limitN, rateN int64 // parsed by validate
}

func (o *fuel) bind(f *pflag.FlagSet) {
	f.StringVar(&o.limit, "fuel", "", "Limit the fuel of one reconcile, about one unit per instruction, for example 500M; the manifest can lower it (default: no limit)")
	f.StringVar(&o.rate, "fuel-rate", "", "Limit the fuel that the module uses per second, by slowing it down (default: no limit)")
}

// validate checks the flags and parses the amounts.
func (o *fuel) validate() error {
	var errs []error
	var err error
	if o.limitN, err = parseFuel(o.limit); err != nil {
		errs = append(errs, fmt.Errorf("--fuel %w", err))
	}
	if o.rateN, err = parseFuel(o.rate); err != nil {
		errs = append(errs, fmt.Errorf("--fuel-rate %w", err))
	}
	return errors.Join(errs...)
}

// parseFuel reads an amount of fuel; "" is 0.
func parseFuel(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Value() < 1 || q.Value() == math.MaxInt64 {
		return 0, fmt.Errorf("%q: want a number of units, such as 500M", s)
	}
	return q.Value(), nil
}

// limits has the limits of a module that have no flag of their own.
type limits struct {
	named  map[string]string
	parsed host.Limits // named, parsed by validate
}

// ownFlag are the limits with a flag of their own.
var ownFlag = []abi.LimitName{abi.LimitMemory, abi.LimitTimeout, abi.LimitFuel}

// namedLimits are the names that --limit takes.
func namedLimits() []string {
	var names []string
	for _, name := range abi.LimitNames {
		if !slices.Contains(ownFlag, name) {
			names = append(names, string(name))
		}
	}
	return names
}

func (o *limits) bind(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&o.named, "limit", nil, "Set a limit of the module as name=value, for example api_rate=50; repeatable (names and defaults: docs/limits.md)")
	var names []string
	for _, name := range namedLimits() {
		names = append(names, name+"=")
	}
	_ = cmd.RegisterFlagCompletionFunc("limit", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// validate parses the limits.
func (o *limits) validate() error {
	o.parsed = host.Limits{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.named)) {
		switch {
		case slices.Contains(ownFlag, abi.LimitName(name)):
			errs = append(errs, fmt.Errorf("--limit %s: use the flag --%s", name, name))
			continue
		case !slices.Contains(namedLimits(), name):
			errs = append(errs, fmt.Errorf("--limit %q: want one of %s", name, strings.Join(namedLimits(), ", ")))
			continue
		}
		q, err := resource.ParseQuantity(o.named[name])
		if err != nil || q.Value() < 1 {
			errs = append(errs, fmt.Errorf("--limit %s=%s: want a number of at least 1, such as 500, 10k or 64Ki", name, o.named[name]))
			continue
		}
		o.parsed.Set(abi.LimitName(name), q.Value())
	}
	if err := o.parsed.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--limit: %w", err))
	}
	return errors.Join(errs...)
}
