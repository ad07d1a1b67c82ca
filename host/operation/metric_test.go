// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"math"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestMetric_RefusesWhatPrometheusCannotShow: such a name would make each scrape of
// the process fail.
func TestMetric_RefusesWhatPrometheusCannotShow(t *testing.T) {
	for _, tc := range []struct {
		kind  int32
		name  string
		value float64
		want  bool
	}{
		{abi.MetricCounter, "renewed_total", 1, true},
		{abi.MetricCounter, "renewed", 0, true},
		{abi.MetricGauge, "_Certificates_9", -1e300, true},
		{abi.MetricCounter, "renewed", -1, false},
		{abi.MetricGauge, "renewed_total", 1, false},
		{abi.MetricGauge, "", 1, false},
		{abi.MetricGauge, "9lives", 1, false},
		{abi.MetricGauge, "größe", 1, false},
		{abi.MetricGauge, "a{b=\"c\"}", 1, false},
		{abi.MetricGauge, "a:b", 1, false},
		{abi.MetricGauge, "a\n", 1, false},
		{abi.MetricGauge, "a", math.NaN(), false},
		{abi.MetricCounter, "a", math.Inf(1), false},
		{2, "a", 1, false},
		{-1, "a", 1, false},
	} {
		if got := validMetric(metricKey{tc.kind, tc.name}, tc.value); got != tc.want {
			t.Errorf("kind %d, %q, %v: %v, want %v", tc.kind, tc.name, tc.value, got, tc.want)
		}
	}
}
