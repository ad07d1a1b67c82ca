// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard"
)

// group is a Group of three replicas, of which b follows three seconds after a command, and c after late. d does not run the controller,
// and e is dead.
type group struct {
	late   time.Duration
	outage bool

	asked  time.Time
	wanted shard.Wanted
}

// Want implements Group.
func (g *group) Want(ctx context.Context, _ string, change func(*shard.Wanted)) (shard.Wanted, error) {
	if g.outage {
		<-ctx.Done()
		return shard.Wanted{}, context.Cause(ctx)
	}
	g.asked = time.Now()
	g.wanted.Generation++
	change(&g.wanted)
	return g.wanted, nil
}

// View implements Group.
func (g *group) View() *shard.View {
	now := time.Now()
	state := func(after time.Duration) shard.State {
		m := shard.Module{Digest: "d", Followed: g.wanted.Generation - 1}
		if now.Sub(g.asked) >= after {
			m.Followed++
		}
		return shard.State{Summary: shard.Summary{Modules: map[string]shard.Module{"web": m}}}
	}
	lease := func(id string, s shard.State) shard.Lease {
		return shard.Lease{ID: id, Lasts: 15 * time.Second, Seen: now, Heard: true, State: s}
	}
	dead := lease("e", state(time.Hour))
	dead.Seen = now.Add(-time.Minute)
	return &shard.View{ID: "a", Own: state(0), Leases: []shard.Lease{
		lease("a", state(time.Hour)), lease("b", state(3*time.Second)), lease("c", state(g.late)), lease("d", shard.State{}), dead,
	}}
}

// TestSteer_WaitsUntilAllHaveFollowed, and names those that have not when its time is up.
func TestSteer_WaitsUntilAllHaveFollowed(t *testing.T) {
	for _, c := range []struct {
		group    group
		took     time.Duration
		replicas int
		err      string
	}{
		{group{}, 3 * time.Second, 3, ""},
		{group{late: 5 * time.Second}, 5 * time.Second, 3, ""},
		{group{late: time.Hour}, followLimit, 2, "controller[web]: 2 replicas followed, and these have not yet: c; they follow as soon as"},
		{group{outage: true}, followLimit, 0, "controller[web]: the record of the replicas could not be written"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			res, err := Service{Group: &c.group}.steer(t.Context(), "web", func(w *shard.Wanted) { w.Paused = true })
			took := time.Since(begin)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || res.Replicas != c.replicas || took < c.took || took > c.took+followPoll {
				t.Errorf("%+v: %+v after %v: %v", c.group, res, took, err)
			}
			if c.group.outage && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if !c.group.outage && !c.group.wanted.Paused {
				t.Error("nothing was asked")
			}
		})
	}
}
