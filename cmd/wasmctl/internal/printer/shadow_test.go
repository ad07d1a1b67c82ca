// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

func TestDifferenceText_IsOneLine(t *testing.T) {
	for _, tt := range []struct {
		d    shadow.Difference
		want string
	}{
		{shadow.Difference{Of: shadow.OfWrite, Write: "apply v1/ConfigMap a/b", Path: "data.x", Live: "1\n2", Shadow: int64(3)}, `~ apply v1/ConfigMap a/b data.x: "1\n2" -> 3`},
		{shadow.Difference{Of: shadow.OfWrite, Write: "delete v1/Pod p", Live: true}, `- delete v1/Pod p: true`},
		{shadow.Difference{Of: shadow.OfError, Shadow: "trap: x"}, `+ error: trap: x`},
	} {
		if got := Difference(&tt.d); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	long := shadow.Difference{Of: shadow.OfWrite, Write: "w", Live: strings.Repeat("x", 1000) + "y", Shadow: strings.Repeat("x", 1000) + "z"}
	if got := Difference(&long); len(got) > 300 || !strings.Contains(got, `xy"`) || !strings.Contains(got, `xz"`) {
		t.Errorf("the first difference is not shown: %s", got)
	}
}
