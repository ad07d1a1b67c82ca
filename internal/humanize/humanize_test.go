// SPDX-License-Identifier: Apache-2.0

package humanize

import (
	"encoding/json"
	"testing"
)

func TestByteSize_TextForPeopleNumberForMachines(t *testing.T) {
	for n, want := range map[Bytes]string{0: "0", 143: "143", 65536: "64Ki", 2862720: "2.7Mi", 1 << 28: "256Mi", 4 << 30: "4Gi", 1000: "1000", 1536: "1.5Ki"} {
		if got := n.String(); got != want {
			t.Errorf("%d: %q, want %q", int64(n), got, want)
		}
	}
	if b, err := json.Marshal(Bytes(1 << 28)); err != nil || string(b) != "268435456" {
		t.Errorf("JSON %s, %v", b, err)
	}
}

// TestQuietLibraries_NoBodies: requests and responses of client-go contain Secrets
