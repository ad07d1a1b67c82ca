// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"os"
	"strings"
	"testing"
)

// TestPlural_AgreesWithTheHost uses the table that the host checks with the
// library of kubebuilder.
func TestPlural_AgreesWithTheHost(t *testing.T) {
	content, err := os.ReadFile("../../host/kubeapi/kinds/testdata/plurals.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		kind, want, _ := strings.Cut(line, " ")
		equal(t, Plural(kind), want)
	}
}
