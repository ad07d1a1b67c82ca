// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"strings"
	"testing"
)

func TestHTTPOptions_Validate(t *testing.T) {
	for text, o := range map[string]HTTP{
		"":                             {Metrics: ":8080", Health: "127.0.0.1:8081"},
		`--metrics-address "8080"`:     {Metrics: "8080"},
		`--health-address "localhost"`: {Health: "localhost"},
		"--pprof needs":                {Pprof: true, Metrics: "none"},
	} {
		err := o.validate()
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", o, err, text)
		}
	}
	for _, none := range []string{"", "0", "none"} {
		if IsAddress(none) {
			t.Errorf("%q is an address", none)
		}
	}
}
