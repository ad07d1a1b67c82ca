// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// ClaimsAnnotation is the annotation of a Lease that contains the claims of its holder.
const ClaimsAnnotation = "wasmctl.dev/claims"

// ErrRival is the reason for refusing writes if another group of replicas runs the same objects.
var ErrRival = errors.New("another group of replicas runs the same objects")

// Publisher writes the claims of this replica to a Lease that has this replica as the holder, in the annotation ClaimsAnnotation.
type Publisher interface {
	Publish(ctx context.Context, claims Claims) error
}

// Registrar makes the claims of the controllers of a process known, and detects groups that claim the same objects. Its fields without a
// comment must be set before use. It is safe for concurrent use.
type Registrar struct {
	Leases    coordinationv1.LeaseInterface
	Publisher Publisher
	Group     string // the name of the group
	// Derived reports whether the name of the group comes from the name of a module, so that a user has not chosen it.
	Derived bool
	// Period is the interval at which replicas renew their Leases, and Lease is how long they wait for a silent one.
	Period, Lease time.Duration
	Logger        *slog.Logger

	mu   sync.Mutex
	mine map[string]Claim // by controller; guarded by mu
}

// Admit claims the objects of a controller of this replica. It waits until no other group can run them; the error is ErrRival if one does,
// or that of ctx. If the Leases cannot be listed, Admit only logs that.
func (r *Registrar) Admit(ctx context.Context, c Claim) error {
	claim := func(pending bool) error {
		c.Pending = pending
		return r.publish(ctx, func() { r.mine[c.Controller] = c })
	}
	if err := r.clear(ctx, func() ([]Claim, error) { err := claim(true); return []Claim{c}, err }); err != nil {
		return err
	}
	return r.retry(ctx, func() (bool, error) { return true, claim(false) })
}

// Confirm returns when this replica may write: the lease is valid and, after a lapse, in which other groups may have taken this one for dead,
// no other group can run the objects of this replica. If one does, Confirm closes the gate. The error is ErrRival, the reason for which the
// gate was closed, or that of ctx.
func (r *Registrar) Confirm(ctx context.Context, gate *Gate) error {
	for {
		lapse, err := gate.Renewal(ctx)
		if err != nil || gate.Leads() {
			return err
		}
		err = r.clear(ctx, func() (mine []Claim, err error) {
			err = r.publish(ctx, func() { mine = slices.Collect(maps.Values(r.mine)) }) // the Lease may be a new one
			return mine, err
		})
		if errors.Is(err, ErrRival) {
			gate.Close(err)
		}
		if err != nil || gate.Confirm(lapse) {
			return err
		}
	}
}

// clear returns once no other group can run the objects of the claims that publish returns. It calls publish before each look at the Leases.
func (r *Registrar) clear(ctx context.Context, publish func() ([]Claim, error)) error {
	var s survey
	return r.retry(ctx, func() (bool, error) {
		mine, err := publish()
		if err != nil {
			return false, err
		}
		list, err := r.Leases.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		done := true
		for _, c := range mine {
			rival, wait := s.judge(time.Now(), r, c, list.Items)
			if rival != "" {
				return false, fmt.Errorf("controller[%s]: group[%s]: %w: %s", c.Controller, r.Group, ErrRival, rival)
			}
			done = done && !wait
		}
		return done, nil
	})
}

// retry calls do until it is done. An error other than ErrRival is retried, unless a right is missing: that is only logged.
func (r *Registrar) retry(ctx context.Context, do func() (done bool, err error)) error {
	for {
		done, err := do()
		switch {
		case errors.Is(err, ErrRival):
			return err
		case apierrors.IsForbidden(err):
			r.Logger.Warn("cannot check whether another group of replicas runs the same objects", "error", err.Error(), "next", rights)
			return nil
		case done && err == nil:
			return nil
		}
		select {
		case <-time.After(r.Period / 8):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release gives the claim of a controller up, if this replica still holds its Lease.
func (r *Registrar) Release(ctx context.Context, controller string) {
	_ = r.publish(ctx, func() { delete(r.mine, controller) }) // otherwise, the claim ends with the Lease
}

// publish changes the claims, and publishes all of them. Of two calls, the later one publishes the changes of both.
func (r *Registrar) publish(ctx context.Context, change func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mine == nil {
		r.mine = map[string]Claim{}
	}
	change()
	return r.Publisher.Publish(ctx, r.claims())
}

// claims returns all claims. The caller must hold mu.
func (r *Registrar) claims() Claims {
	out := Claims{Group: r.Group, Derived: r.Derived}
	for _, name := range slices.Sorted(maps.Keys(r.mine)) {
		out.Claims = append(out.Claims, r.mine[name])
	}
	return out
}

// Text returns the value of the annotation.
func (c Claims) Text() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("BUG: claims: " + err.Error()) // only strings and booleans
	}
	return string(b)
}
