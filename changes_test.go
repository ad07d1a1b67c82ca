// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// A history has the latest changes only, also over restarts of the process, and a damaged file does
// not end it.
func TestChanges_AreBoundedAndStored(t *testing.T) {
	rt := &Runtime{log: slog.New(slog.DiscardHandler)}
	rt.opts.StateDir = t.TempDir()
	loaderOf := func() loader { return loader{newController(rt, "web", nil)} }
	first := loaderOf()
	for i := range 2 * maxChanges {
		first.Changed(&admin.Change{Revision: uint64(i), Digest: fmt.Sprint("sha256:", i), Why: strings.Repeat("x", 1<<20)})
	}
	second := loaderOf()
	second.Changed(&admin.Change{Revision: 1, Digest: "sha256:last"})
	list := second.changes.all()
	if len(list) != maxChanges || list[0].Revision != maxChanges+1 || len(list[0].Why) > maxWhy || list[maxChanges-1].Digest != "sha256:last" {
		t.Errorf("%d changes, from %d to %s", len(list), list[0].Revision, list[len(list)-1].Digest)
	}
	if err := ledger.Dir(rt.opts.StateDir).SetHistory("web", []byte("{")); err != nil {
		t.Fatal(err)
	}
	third := loaderOf()
	third.Changed(&admin.Change{Digest: "sha256:new"})
	if list := third.changes.all(); len(list) != 1 {
		t.Errorf("%v", list)
	}
	if stored, err := ledger.Dir(rt.opts.StateDir).History("web"); err != nil || !strings.Contains(string(stored), "sha256:new") {
		t.Errorf("%s, %v", stored, err)
	}
}
