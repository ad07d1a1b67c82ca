// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// Group are the replicas that share the objects, as this one sees them.
type Group interface {
	// View returns what this replica knows about all.
	View() *shard.View
	// Want asks all replicas for another state of a controller, and returns it once all can know it. The error is that of ctx.
	Want(ctx context.Context, controller string, change func(*shard.Wanted)) (shard.Wanted, error)
}

const (
	// followLimit is how long a command waits until all replicas have followed. A replica reports that with the next renewal of its
	// lease.
	followLimit = 12 * time.Second
	followPoll  = 50 * time.Millisecond
)

// steer asks all replicas for another state of a controller, and waits until they have followed. The error names those that have not.
func (s Service) steer(ctx context.Context, controller string, change func(*shard.Wanted)) (res admin.Steered, err error) {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	w, err := s.Group.Want(ctx, controller, change)
	if err != nil {
		return res, fmt.Errorf("controller[%s]: the record of the replicas could not be written: %w; if the API server answers again, the command may still take effect", controller, err)
	}
	for {
		followed, behind := followers(s.view(), controller, w.Generation, time.Now())
		if res.Replicas = followed; len(behind) == 0 {
			return res, nil
		}
		select {
		case <-ctx.Done():
			return res, fmt.Errorf("controller[%s]: %s followed, and these have not yet: %s; they follow as soon as they can read the record: see wasmctl status --all-replicas",
				controller, humanize.Plural(followed, "replica"), strings.Join(behind, ", "))
		case <-time.After(followPoll):
		}
	}
}

// followers returns the number of live replicas that run a controller and have followed a generation of what is wanted, and the IDs of those
// that have not.
func followers(v *shard.View, controller string, generation uint64, now time.Time) (followed int, behind []string) {
	for i := range v.Leases {
		l := &v.Leases[i]
		m, runs := v.StateOf(l).Summary.Modules[controller]
		switch {
		case !runs || !l.Live(now):
		case m.Followed >= generation:
			followed++
		default:
			behind = append(behind, l.ID)
		}
	}
	return followed, behind
}
