// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// TestTopLines_CostOfAController: each figure of a controller and an object has its column. On a narrow
// terminal, the least important columns are omitted first.
func TestTopLines_CostOfAController(t *testing.T) {
	load := history.Load{Runs: 12.5, Errors: 0.25, Busy: 0.5, Fuel: 1_500_000, Guest: 0.125, Host: 0.25, Requests: 3, Answers: 512}
	top := &admin.Top{
		Controllers: []admin.TopController{{Name: "web", Load: load, Decoded: 2048, Memory: 3 << 20, HostMemory: 1 << 20, Workers: 4, Running: 1}},
		Objects:     []admin.TopObject{{Controller: "web", Object: "shop/hello", Load: load}},
	}
	want := []string{
		"CONTROLLER   BUSY  GUEST   HOST  RUNS/S  ERRORS/S  REQUESTS/S  FUEL/S  DECODED/S  WORKERS  MEMORY",
		"web         50.0%  12.5%  25.0%   12.50      0.25        3.00    1.5M        2Ki      1/4     4Mi",
		"",
		"OBJECT      CONTROLLER   BUSY  GUEST   HOST  RUNS/S  ERRORS/S  REQUESTS/S  FUEL/S",
		"shop/hello  web         50.0%  12.5%  25.0%   12.50      0.25        3.00    1.5M",
	}
	if diff := cmp.Diff(want, TopLines(top, Screen{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	narrow := TopLines(top, Screen{width: 70})[0]
	if len(narrow) > 70 || strings.Contains(narrow, "FUEL") || strings.Contains(narrow, "WORKERS") || !strings.Contains(narrow, "HOST") || !strings.Contains(narrow, "MEMORY") {
		t.Errorf("on 70 columns: %s", narrow)
	}
}
