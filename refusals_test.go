// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// A module that cannot be compiled is compiled again after 1, 2, 4 minutes and so on, up to an
// hour. Another tenant may try the same module at any time.
func TestRefusals_BackOffByTenantAndDigest(t *testing.T) {
	var r refusals
	now, bad := time.Now(), errors.New("bad")
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		wait *= time.Minute
		if err := r.find(now, "a", "d"); err != nil {
			t.Fatalf("not tried again: %v", err)
		}
		r.add(now, "a", "d", bad)
		if err := r.find(now.Add(wait-1), "a", "d"); !errors.Is(err, bad) {
			t.Errorf("tried again before %v: %v", wait, err)
		}
		if r.find(now, "b", "d") != nil || r.find(now, "a", "e") != nil {
			t.Error("another tenant or module is refused")
		}
		now = now.Add(wait)
	}
}

// A tenant with many modules makes the table forget only its own modules; old ones are
// forgotten.
func TestRefusals_AreBounded(t *testing.T) {
	var r refusals
	now, bad := time.Now(), errors.New("bad")
	r.add(now, "a", "d", bad)
	for i := range 3 * maxRefusals {
		r.add(now.Add(time.Duration(i)), "b", strconv.Itoa(i), bad)
	}
	if n := len(r.of["b"]); n != maxRefusals || r.find(now, "a", "d") == nil {
		t.Errorf("%d modules of one tenant are remembered, %d of the other", n, len(r.of["a"]))
	}
	r.add(now.Add(2*mostRecompile), "c", "d", bad)
	if len(r.of) != 1 {
		t.Errorf("%d tenants are remembered, want 1", len(r.of))
	}
}
