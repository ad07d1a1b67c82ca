// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apiv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

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
		return &leader.Notes{Leases: leases, Namespace: "default", Name: "notes-at-once", Gate: gate, Separate: true}
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

// deletedLease is a Lease that does not exist.
type deletedLease struct {
	coordinationv1.LeaseInterface

	created bool
}

func (d *deletedLease) Get(context.Context, string, metav1.GetOptions) (*apiv1.Lease, error) {
	return nil, apierrors.NewNotFound(leases, "notes")
}

func (d *deletedLease) Create(_ context.Context, lease *apiv1.Lease, _ metav1.CreateOptions) (*apiv1.Lease, error) {
	d.created = true
	return lease, nil
}

func (d *deletedLease) Update(_ context.Context, lease *apiv1.Lease, _ metav1.UpdateOptions) (*apiv1.Lease, error) {
	return lease, nil
}

// A note does not create the Lease of an election, which a standby would take for one that was released, nor any Lease while this replica does
// not lead.
func TestNotes_CreateOnlyTheirOwnLease(t *testing.T) {
	for _, separate := range []bool{false, true} {
		for _, leads := range []bool{false, true} {
			gate, on := leader.NewGate(time.Hour), &deletedLease{}
			if leads {
				gate.Renewed(time.Now())
			}
			n := &leader.Notes{Leases: on, Name: "notes", Gate: gate, Separate: separate}
			err := n.SetNote(t.Context(), "a", "b")
			if want := separate && leads; on.created != want || (err == nil) != want {
				t.Errorf("separate %t, leads %t: created %t, %v", separate, leads, on.created, err)
			}
			if separate && !leads && !errors.Is(err, leader.ErrLost) {
				t.Errorf("without a lease: %v", err)
			}
		}
	}
}
