package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// What is kept in Leases. All of one group have the label, which a watch selects by.
const (
	groupLabel       = "wasmctl.dev/shards"
	stateAnnotation  = "wasmctl.dev/replica" // of a replica's: State
	recordAnnotation = "wasmctl.dev/record"  // of the group's: Record
)

// leases reads and writes the Leases of a group. Its methods are called by one
// goroutine at a time each.
type leases struct {
	client clientv1.LeaseInterface
	group  string
	id     string // of this replica: the name of its Lease
	lasts  time.Duration

	mu      sync.Mutex // held while the own Lease is written
	version string     // of the own Lease; empty before it is created; guarded by mu
	left    bool       // it is not renewed any longer; guarded by mu
}

var errLeft = errors.New("the replica has left")

// RecordName is the name of the Lease with the record of a group.
func RecordName(group string) string { return group + "-shards" }

func (l *leases) recordName() string { return RecordName(l.group) }

// meta is the head of a Lease of the group.
func (l *leases) meta(name, version, annotation, text string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, ResourceVersion: version, Labels: map[string]string{groupLabel: l.group}, Annotations: map[string]string{annotation: text},
	}
}

// renew writes the own Lease. Lost says that somebody has ended it.
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
		// The answer to a renewal was lost, somebody has changed a label, or the lease
		// was ended.
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

// ended reports whether the replica of a Lease was fenced off.
func ended(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""
}

// end ends the Lease of a replica if it still has a version; lost says that it has
// not.
func (l *leases) end(ctx context.Context, name, version string) (lost bool, err error) {
	var seconds int32 = 1 // a Lease must last
	_, err = l.client.Update(ctx, &coordinationv1.Lease{
		ObjectMeta: l.meta(name, version, stateAnnotation, "{}"), Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds},
	}, metav1.UpdateOptions{})
	return lostVersion(err)
}

// forget deletes the Lease of a replica if it still has a version.
func (l *leases) forget(ctx context.Context, name, version string) (lost bool, err error) {
	err = l.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	return lostVersion(err)
}

// leave deletes the own Lease, after a renewal that is under way: the API server would
// create it again, as it does with Leases that are updated and not there.
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

// commit writes the record if it still has a version; empty: if there is none.
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
	if apierrors.IsNotFound(err) { // somebody has deleted it
		return "", true, nil
	}
	if lost, err = lostVersion(err); lost || err != nil {
		return "", lost, err
	}
	return answer.ResourceVersion, false, nil
}

// read makes what the core sees of the Leases of the group. An error is about the
// record; the rest is read all the same.
func (l *leases) read(list []*coordinationv1.Lease) (all []Lease, record *Record, version string, err error) {
	for _, lease := range list {
		if lease.Name == l.recordName() {
			version = lease.ResourceVersion
			record, err = decodeRecord(lease.Annotations[recordAnnotation])
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
		err = fmt.Errorf("lease[%s]: %w; stop all replicas, and delete it", l.recordName(), err)
	}
	return all, record, version, err
}
