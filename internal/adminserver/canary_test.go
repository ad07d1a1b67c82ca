// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func TestCanaryOf_RefusesWrongRequests(t *testing.T) {
	for _, bad := range []struct{ share, namespace, selector, want string }{
		{"10", "a", "", "such as 10%"},
		{"0%", "a", "", "more than 0%"},
		{"101%", "a", "", "at most 100%"},
		{"x%", "a", "", `"x%"`},
		{"NaN%", "a", "", "at most"},
		{"", "", "", "a namespace is empty"},
		{"", "a", "x in", "unable to parse requirement"},
		{"off", "a", "", "omit its namespaces"},
	} {
		c := &admin.Canary{Share: bad.share, Namespaces: []string{bad.namespace}, Selector: bad.selector}
		if _, err := canaryOf(c, rollout.Canary{}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := canaryOf(&admin.Canary{Share: "1%", Time: new(-time.Second)}, rollout.Canary{}); err == nil {
		t.Error("a negative time is accepted")
	}
}

func TestCanaryOf_FollowsTheRequest(t *testing.T) {
	c := &admin.Canary{Share: "0.5%", Namespaces: []string{"a", "b"}, Selector: " tier=web ", Time: new(time.Minute)}
	got, err := canaryOf(c, rollout.Canary{})
	if want := "0.5% of the objects in namespaces a, b with tier=web, for 1m0s"; err != nil || got.String() != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	if off, err := canaryOf(&admin.Canary{Share: "off"}, *got); err != nil || off.Enabled() {
		t.Errorf("off: got %v, %v", off, err)
	}
	if usual, err := canaryOf(&admin.Canary{Time: new(time.Hour)}, *got); err != nil || usual.Time != time.Hour || usual.Share != got.Share {
		t.Errorf("only a time: got %v, %v", usual, err)
	}
}
