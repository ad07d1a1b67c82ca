package leader

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Note returns an annotation of the Lease, which all replicas share; empty where it
// is not there.
func (e *Elector) Note(ctx context.Context, key string) (string, error) {
	lease, err := e.leases.Get(ctx, e.cfg.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("leader[%s/%s]: read the lease: %w", e.cfg.Namespace, e.cfg.Name, err)
	}
	return lease.Annotations[key], nil
}

// SetNote changes an annotation of the Lease. Only the leader does.
func (e *Elector) SetNote(ctx context.Context, key, value string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the lease is renewed meanwhile
		lease, err := e.leases.Get(ctx, e.cfg.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !e.gate.Leads() {
			return ErrLost
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, key, value)
		_, err = e.leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("leader[%s/%s]: annotate the lease: %w", e.cfg.Namespace, e.cfg.Name, err)
	}
	return nil
}
