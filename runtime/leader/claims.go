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

	apiv1 "k8s.io/api/coordination/v1"
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
	c.Pending = true
	claims := r.set(c)
	var s survey
	for {
		list := &apiv1.LeaseList{}
		err := r.Publisher.Publish(ctx, claims)
		if err == nil {
			list, err = r.Leases.List(ctx, metav1.ListOptions{})
		}
		switch {
		case apierrors.IsForbidden(err):
			r.Logger.Warn("cannot check whether another group of replicas runs the same objects", "controller", c.Controller, "error", err.Error(), "next", rights)
			return nil
		case err == nil && c.Pending:
			rival, wait := s.judge(time.Now(), &claims, c, list.Items)
			if rival != "" {
				return fmt.Errorf("controller[%s]: group[%s]: %w: %s", c.Controller, r.Group, ErrRival, rival)
			}
			c.Pending = wait
		case err == nil:
			return nil
		}
		if c.Pending || err != nil {
			select {
			case <-time.After(r.Period / 8):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		claims = r.set(c)
	}
}

// Release gives the claim of a controller up, if this replica still holds its Lease.
func (r *Registrar) Release(ctx context.Context, controller string) {
	r.mu.Lock()
	delete(r.mine, controller)
	claims := r.claims()
	r.mu.Unlock()
	_ = r.Publisher.Publish(ctx, claims) // otherwise, the claim ends with the Lease
}

// set records a claim, and returns all of them.
func (r *Registrar) set(c Claim) Claims {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mine == nil {
		r.mine = map[string]Claim{}
	}
	r.mine[c.Controller] = c
	return r.claims()
}

// claims returns all claims. The caller must hold mu.
func (r *Registrar) claims() Claims {
	out := Claims{Group: r.Group, Derived: r.Derived, Lease: r.Lease}
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
