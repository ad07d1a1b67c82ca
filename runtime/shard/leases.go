// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/wasmctl/wasmctl/runtime/leader"
)

// The contents of Leases. All leases of a group have the label, by which a watch selects them.
const (
	groupLabel       = "wasmctl.dev/shards"
	stateAnnotation  = "wasmctl.dev/replica" // of the lease of a replica: State
	recordAnnotation = "wasmctl.dev/record"  // of the lease of the group: Record
)

// leases reads and writes the Leases of a group. Each method may be called by only one goroutine at a time.
type leases struct {
	client clientv1.LeaseInterface
	group  string
	id     string // of this replica: the name of its Lease
	lasts  time.Duration
	claims *atomic.Pointer[string] // written with the replica's own Lease, if there are any

	mu      sync.Mutex // held while the replica's own Lease is written
	version string     // of the replica's own Lease; empty before it is created; guarded by mu
	left    bool       // it is no longer renewed; guarded by mu
}

// newLeases returns the access of a replica with this ID.
func (m *Member) newLeases(id string) *leases {
	return &leases{client: m.client, group: m.cfg.Group, id: id, lasts: m.cfg.Timing.Lease, claims: &m.claims}
}

var errLeft = errors.New("the replica has left")

// RecordName returns the name of the Lease that contains the record of a group.
func RecordName(group string) string { return group + "-shards" }

func (l *leases) recordName() string { return RecordName(l.group) }

// meta returns the metadata of a Lease of the group.
func (l *leases) meta(name, version, annotation, text string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, ResourceVersion: version, Labels: map[string]string{groupLabel: l.group}, Annotations: map[string]string{annotation: text},
	}
}

// renew writes the replica's own Lease. lost means that it was ended.
func (l *leases) renew(ctx context.Context, s State) (lost bool, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left {
		return false, errLeft
	}
	for range 2 {
		now, seconds := metav1.NowMicro(), int32(l.lasts/time.Second)
		lease := &coordinationv1.Lease{
			ObjectMeta: l.meta(l.id, l.version, stateAnnotation, string(text)),
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &l.id, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}
		if claims := l.claims.Load(); claims != nil {
			lease.Annotations[leader.ClaimsAnnotation] = *claims
		}
		var answer *coordinationv1.Lease
		if l.version == "" {
			answer, err = l.client.Create(ctx, lease, metav1.CreateOptions{})
		} else {
			answer, err = l.client.Update(ctx, lease, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			l.version = answer.ResourceVersion
			return false, nil
		case apierrors.IsNotFound(err) && l.version != "":
			return true, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
			return false, err
		}
		// The response to an earlier renewal was lost, a label was changed, or the lease was ended.
		current, failed := l.client.Get(ctx, l.id, metav1.GetOptions{})
		if failed != nil {
			return apierrors.IsNotFound(failed) && l.version != "", failed
		}
		if ended(current) {
			return true, nil
		}
		l.version = current.ResourceVersion
	}
	return false, err
}

// ended reports whether the replica of a Lease was fenced.
func ended(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""
}

// end ends the Lease of a replica if it still has the given version; otherwise, lost is true.
func (l *leases) end(ctx context.Context, name, version string) (lost bool, err error) {
	var seconds int32 = 1 // the duration must be positive
	_, err = l.client.Update(ctx, &coordinationv1.Lease{
		ObjectMeta: l.meta(name, version, stateAnnotation, "{}"), Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds},
	}, metav1.UpdateOptions{})
	return lostVersion(err)
}

// forget deletes the Lease of a replica if it still has the given version.
func (l *leases) forget(ctx context.Context, name, version string) (lost bool, err error) {
	err = l.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	return lostVersion(err)
}

// leave deletes the replica's own Lease, after a renewal in progress has ended: otherwise, the API server would create the Lease again, as
// it does for updates of Leases that do not exist.
func (l *leases) leave(ctx context.Context, within time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	l.left = true
	if l.version == "" {
		return nil
	}
	return l.client.Delete(ctx, l.id, metav1.DeleteOptions{})
}

func lostVersion(err error) (bool, error) {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return true, nil
	}
	return false, err
}

// commit writes the record if it still has version from; if from is empty, there must be no record.
func (l *leases) commit(ctx context.Context, r *Record, from string) (version string, lost bool, err error) {
	text, err := r.encode()
	if err != nil {
		return "", false, err
	}
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: l.meta(l.recordName(), from, recordAnnotation, text), Spec: coordinationv1.LeaseSpec{HolderIdentity: &l.group, RenewTime: &now},
	}
	var answer *coordinationv1.Lease
	if from == "" {
		answer, err = l.client.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		answer, err = l.client.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if apierrors.IsNotFound(err) { // it was deleted
		return "", true, nil
	}
	if lost, err = lostVersion(err); lost || err != nil {
		return "", lost, err
	}
	return answer.ResourceVersion, false, nil
}

// read converts the Leases of the group to the core's representation. If the record is invalid, it returns an error in addition to the
// leases.
func (l *leases) read(list []*coordinationv1.Lease) (all []Lease, record *Record, version string, err error) {
	for _, lease := range list {
		if lease.Name == l.recordName() {
			version = lease.ResourceVersion
			if record, err = decodeRecord(lease.Annotations[recordAnnotation]); err == nil {
				record.ID = string(lease.UID)
			}
			continue
		}
		out := Lease{ID: lease.Name, Version: lease.ResourceVersion, Ended: ended(lease)}
		if s := lease.Spec.LeaseDurationSeconds; s != nil {
			out.Lasts = time.Duration(*s) * time.Second
		}
		if text := lease.Annotations[stateAnnotation]; json.Unmarshal([]byte(text), &out.State) != nil {
			out.State = State{} // it is given no slots
		}
		all = append(all, out)
	}
	if err != nil {
		err = fmt.Errorf("lease[%s]: %w", l.recordName(), err)
	}
	return all, record, version, err
}
