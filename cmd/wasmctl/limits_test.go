package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
)

func limitFlags(t *testing.T, args ...string) (*limitOptions, error) {
	t.Helper()
	var o limitOptions
	cmd := &cobra.Command{}
	o.bind(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return &o, o.validate()
}

func TestLimitFlags_SetTheLimits(t *testing.T) {
	o, err := limitFlags(t, "--limit", "host_calls=5k,api_rate=50", "--limit", "result_bytes=64Ki")
	if want := (host.Limits{HostCalls: 5000, APIRate: 50, ResultBytes: 64 << 10}); err != nil || o.limits != want {
		t.Errorf("got %+v, %v", o.limits, err)
	}
	c := controllerOptions{limit: *o, memoryBytes: 1 << 20, timeout: 7}
	if l := c.hostLimits(); l.Memory != 1<<20 || l.Timeout != 7 || l.APIRate != 50 {
		t.Errorf("together with the other flags: %+v", l)
	}
}

// Each limit of a manifest can be set by a flag, and each wrong value is named.
func TestLimitFlags_EachNameAndMistakes(t *testing.T) {
	for _, name := range abi.LimitNames {
		_, err := limitFlags(t, "--limit", string(name)+"=1")
		if own := strings.Contains(string(name), "memory") || name == abi.LimitTimeout || name == abi.LimitFuel; (err != nil) != own {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := limitFlags(t, "--limit", "speed=1,events=0,log_lines=x,stack=1Gi,memory=1Mi")
	for _, want := range []string{`--limit "speed": want one of host_calls,`, "--limit events=0: want a number", "--limit log_lines=x: want a number", "stack", "--limit memory: it has a flag of its own"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %s", err, want)
		}
	}
}
