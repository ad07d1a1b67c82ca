// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/leader"
)

// TestNotes_ReplicasThatStartAtOnceWriteAll: three replicas write notes for each of their controllers at the same time,
// half of them the same in all.
func TestNotes_ReplicasThatStartAtOnceWriteAll(t *testing.T) {
	t.Parallel()
	const replicas, controllers = 3, 40
	leases := kubernetes.NewForConfigOrDie(devclustertest.Admin(t)).CoordinationV1().Leases("default")
	of := func() *leader.Notes {
		gate := leader.NewGate(time.Hour)
		gate.Renewed(time.Now())
		return &leader.Notes{Leases: leases, Namespace: "default", Name: "notes-at-once", Gate: gate}
	}
	key := func(replica, i int) string { return fmt.Sprintf("example.com/%d-%d", replica*(i%2), i) }
	var wg sync.WaitGroup
	for r := range replicas {
		notes := of()
		for i := range controllers {
			wg.Go(func() {
				if err := notes.SetNote(t.Context(), key(r, i), key(r, i)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for r := range replicas {
		for i := range controllers {
			if got, err := of().Note(t.Context(), key(r, i)); err != nil || got != key(r, i) {
				t.Errorf("%s: %q (%v)", key(r, i), got, err)
			}
		}
	}
}
