// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// Watch is the state of a watch for a health check.
type Watch struct {
	Name string
	// Stalled means that it neither receives anything from the API server nor sends requests.
	Stalled bool
	// Progress is when it last received something; zero if never.
	Progress time.Time
}

// Watches is the check that no watch has stalled (rule 14): a process with stalled watches is not alive, even if it answers. A watch that
// is denied, or cannot reach the API server, has not stalled: a restart of the process would not help. watches must not block.
func Watches(watches func() []Watch) Check {
	return Check{Name: "watches", Do: func() error {
		var stalled []string
		for _, w := range watches() {
			if !w.Stalled {
				continue
			}
			since := "no response so far"
			if !w.Progress.IsZero() {
				since = "last response at " + w.Progress.UTC().Format(time.RFC3339)
			}
			stalled = append(stalled, fmt.Sprintf("%s %s", w.Name, since))
		}
		return failed("stalled: the watch", stalled)
	}}
}

// Synced is the check that a controller's watches have synced. unsynced returns the watches that have not, and must not block.
func Synced(controller string, unsynced func() []string) Check {
	return Check{Name: "synced-" + controller, Do: func() error { return failed("not synced", unsynced()) }}
}

func failed(what string, list []string) error {
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", what, strings.Join(list, "; "))
}
