// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

func TestConfig_ValidateNamesTheField(t *testing.T) {
	for want, cfg := range map[string]config{
		"concurrency -1":   {Concurrency: -1},
		"must be 1 to 100": {Concurrency: runner.MaxConcurrency + 1},
		"drain timeout -1": {DrainTimeout: -1},
	} {
		if _, err := runner.New(cfg, sleepJob(0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v does not name %q", cfg, err, want)
		}
	}
	if err := (config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
}

func TestConfig_ValidateReachesTheDebounce(t *testing.T) {
	cfg := config{Scheduler: scheduler.Config[string]{Debounce: scheduler.Debounce{Quiet: -time.Second}}}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "debounce: quiet -1s") {
		t.Fatalf("error %v", err)
	}
}
