// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	apiv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/util/retry"
)

// rights is advice for the case that the API server refuses requests for leases.
const rights = "give this user get, list, create and update on leases.coordination.k8s.io in the namespace of the lease, as wasmctl rbac prints them with --leader-elect or --shards"

// Notes are annotations of a Lease that all replicas share. Notes must not be copied after first use.
type Notes struct {
	Leases          coordinationv1.LeaseInterface
	Namespace, Name string
	// Gate controls whether this replica may write them.
	Gate *Gate
	// Separate reports whether the Lease contains nothing else. Only then is it created if it does not exist: without the Lease of an
	// election, no replica leads.
	Separate bool

	writing sync.Mutex // held while one is written, so that the controllers of a process do not conflict
}

// noteBackoff allows for replicas whose controllers all start at the same time.
var noteBackoff = wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 1}

// Note returns an annotation, or "" if it does not exist.
func (n *Notes) Note(ctx context.Context, key string) (string, error) {
	lease, err := n.Leases.Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: %s", err, rights)
	}
	if err != nil {
		return "", fmt.Errorf("leader[%s/%s]: read the lease: %w", n.Namespace, n.Name, err)
	}
	return lease.Annotations[key], nil
}

// SetNote changes an annotation. It fails unless this replica has a valid lease.
func (n *Notes) SetNote(ctx context.Context, key, value string) error {
	n.writing.Lock()
	defer n.writing.Unlock()
	other := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err := retry.OnError(noteBackoff, other, func() error { // other replicas may write it at the same time
		lease, err := n.Leases.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil && (!n.Separate || !apierrors.IsNotFound(err)) {
			return err
		}
		if !n.Gate.Valid() {
			return ErrLost
		}
		if err != nil {
			if lease, err = n.Leases.Create(ctx, &apiv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if lease.Annotations[key] == value {
			return nil // another replica has written it
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, key, value)
		_, err = n.Leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("leader[%s/%s]: annotate the lease: %w", n.Namespace, n.Name, err)
	}
	return nil
}
