// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"testing"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// TestParseBudget_IsHalfOfWhatThereIs: without the flag, the modules get at most half of the available
// memory.
func TestParseBudget_IsHalfOfWhatThereIs(t *testing.T) {
	for _, tt := range []struct {
		flag      string
		available int64
		want      int64
	}{
		{"", 1 << 30, 1 << 29}, {"", 0, 0}, {"none", 1 << 30, 0}, {"64Mi", 1 << 30, 64 << 20}, {"", 1, v1alpha1.MinMemory}, {"8Gi", 1 << 30, 8 << 30},
	} {
		if got, err := parseBudget(tt.flag, tt.available); err != nil || got != tt.want {
			t.Errorf("%q of %d: %d, %v, want %d", tt.flag, tt.available, got, err, tt.want)
		}
	}
	if _, err := parseBudget("1", 1<<30); err == nil {
		t.Error("one byte is enough")
	}
	var p Process
	p.LogFormat = "text"
	if err := p.Validate(); err == nil && p.Options().MemoryBudget == 0 {
		t.Error("there is no budget by default")
	}
}
