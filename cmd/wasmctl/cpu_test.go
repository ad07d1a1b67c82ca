package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/host"
)

// cpuFlags parses flags as run does.
func cpuFlags(t *testing.T, args ...string) (*cpuOptions, error) {
	t.Helper()
	var o cpuOptions
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.bind(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &o, o.validate()
}

func TestCPUFlags_SetTheLimits(t *testing.T) {
	for _, tc := range []struct {
		args []string
		cpu  host.CPU
		fuel int64
		rate int64
	}{
		{nil, host.CPUFuel, 0, 0},
		{[]string{"--cpu", "close"}, host.CPUClose, 0, 0},
		{[]string{"--cpu", "off"}, host.CPUOff, 0, 0},
		{[]string{"--fuel", "500M", "--fuel-rate=2G"}, host.CPUFuel, 500_000_000, 2_000_000_000},
		{[]string{"--fuel", "1"}, host.CPUFuel, 1, 0},
	} {
		o, err := cpuFlags(t, tc.args...)
		if err != nil {
			t.Errorf("%v: %v", tc.args, err)
			continue
		}
		cfg := host.Config{Limits: host.Limits{Memory: 7, Timeout: time.Second}}
		o.apply(&cfg)
		if cfg.CPU != tc.cpu || cfg.FuelRate != tc.rate || cfg.Limits != (host.Limits{Memory: 7, Timeout: time.Second, Fuel: tc.fuel}) {
			t.Errorf("%v: got %q, %+v, rate %d", tc.args, cfg.CPU, cfg.Limits, cfg.FuelRate)
		}
	}
}

func TestCPUFlags_BadOnesSayWhatIsWanted(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--cpu", "fast"}, `--cpu "fast": want one of [fuel close off]`},
		{[]string{"--fuel", "much"}, `--fuel "much": want a number of units, such as 500M`},
		{[]string{"--fuel", "0"}, `--fuel "0": want a number of units, such as 500M`},
		{[]string{"--fuel-rate", "-3"}, `--fuel-rate "-3": want a number of units, such as 500M`},
		{[]string{"--fuel", "99999999E"}, `--fuel "99999999E": want a number of units, such as 500M`},
		{[]string{"--fuel", "1", "--cpu", "close"}, "--fuel and --fuel-rate need --cpu fuel: nobody counts with --cpu close"},
	} {
		if _, err := cpuFlags(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %s", tc.args, err, tc.want)
		}
	}
}
