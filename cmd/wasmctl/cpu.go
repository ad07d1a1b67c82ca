package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmctl/wasmctl/host"
)

// cpuOptions are the flags that bound the work of a module.
type cpuOptions struct {
	mode            string
	fuel, rate      string
	fuelN, rateFuel int64 // parsed by validate
}

func (o *cpuOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.mode, "cpu", string(host.CPUs[0]), "how a module that spins is stopped: fuel (it counts its work), close (slow) or off (not at all: it stops the whole process)")
	f.StringVar(&o.fuel, "fuel", "", "work of one reconcile in units of fuel, about an instruction each, for example 500M; the manifest may say less (default: not bounded)")
	f.StringVar(&o.rate, "fuel-rate", "", "work of the module in a second, in units of fuel; beyond it the module is slowed down (default: not bounded)")
}

// validate checks the flags and parses the amounts.
func (o *cpuOptions) validate() error {
	var errs []error
	if !slices.Contains(host.CPUs, host.CPU(o.mode)) {
		errs = append(errs, fmt.Errorf("--cpu %q: want one of %v", o.mode, host.CPUs))
	}
	var err error
	if o.fuelN, err = parseFuel(o.fuel); err != nil {
		errs = append(errs, fmt.Errorf("--fuel %w", err))
	}
	if o.rateFuel, err = parseFuel(o.rate); err != nil {
		errs = append(errs, fmt.Errorf("--fuel-rate %w", err))
	}
	if host.CPU(o.mode) != host.CPUFuel && (o.fuelN > 0 || o.rateFuel > 0) {
		errs = append(errs, fmt.Errorf("--fuel and --fuel-rate need --cpu %s: nobody counts with --cpu %s", host.CPUFuel, o.mode))
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

// apply sets what the flags say.
func (o *cpuOptions) apply(cfg *host.Config) {
	cfg.CPU, cfg.Limits.Fuel, cfg.FuelRate = host.CPU(o.mode), o.fuelN, o.rateFuel
}
