package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host"
)

func TestFuelFlags_SetTheLimits(t *testing.T) {
	for _, tc := range []struct {
		args []string
		fuel int64
		rate int64
	}{
		{nil, 0, 0},
		{[]string{"--fuel", "500M", "--fuel-rate=2G"}, 500_000_000, 2_000_000_000},
		{[]string{"--fuel", "1"}, 1, 0},
	} {
		o := optionsFor(t, append(tc.args, "--memory", "64Ki", "--timeout", "1s")...)
		if o.FuelRate != tc.rate || o.Limits != (host.Limits{Memory: 64 << 10, Timeout: time.Second, Fuel: tc.fuel}) {
			t.Errorf("%v: got %+v, rate %d", tc.args, o.Limits, o.FuelRate)
		}
	}
}

func TestFuelFlags_BadOnesSayWhatIsWanted(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--fuel", "much"}, `--fuel "much": want a number of units, such as 500M`},
		{[]string{"--fuel", "0"}, `--fuel "0": want a number of units, such as 500M`},
		{[]string{"--fuel-rate", "-3"}, `--fuel-rate "-3": want a number of units, such as 500M`},
		{[]string{"--fuel", "99999999E"}, `--fuel "99999999E": want a number of units, such as 500M`},
	} {
		if _, err := controllerFlags(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %s", tc.args, err, tc.want)
		}
	}
}
