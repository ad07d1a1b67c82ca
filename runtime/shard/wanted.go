// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"time"
)

// Wanted is the state of a controller that commands have asked of all replicas. Each replica follows it on its own, and reports in its lease
// which generation it has followed.
type Wanted struct {
	// Generation counts the commands.
	Generation uint64 `json:"generation"`
	// Paused means that no replica starts reconciles of the controller, also if it joins later.
	Paused bool `json:"paused,omitempty"`
	// Trigger is the generation of the last command to reconcile all objects, and Force that of the last one by which no run is skipped.
	Trigger uint64 `json:"trigger,omitempty"`
	Force   uint64 `json:"force,omitempty"`
}

// wishes are the latest Wanted that a replica knows, by controller. Each replica adds them to each record that it writes, so that they
// survive the loss of the record, and a replica of an older version that removes them.
type wishes map[string]Wanted

// ask changes what is wanted of a controller, and returns it.
func (w *wishes) ask(controller string, change func(*Wanted)) Wanted {
	next := (*w)[controller]
	next.Generation++
	change(&next)
	w.set(controller, next)
	return next
}

func (w *wishes) set(controller string, to Wanted) {
	if *w == nil {
		*w = wishes{}
	}
	(*w)[controller] = to
}

// adopt takes over what is wanted by a record. Of two commands that replicas gave at the same time, the one in the record counts.
func (w *wishes) adopt(r *Record) {
	for controller, wanted := range r.Wanted {
		if wanted.Generation >= (*w)[controller].Generation {
			w.set(controller, wanted)
		}
	}
}

// add adds to a record what it lacks, and reports whether that is anything.
func (w *wishes) add(r *Record) (added bool) {
	for controller, wanted := range *w {
		if wanted.Generation <= r.Wanted[controller].Generation {
			continue
		}
		if added = true; r.Wanted == nil {
			r.Wanted = map[string]Wanted{}
		}
		r.Wanted[controller] = wanted
	}
	return added
}

// askEvery is the interval at which Want looks for its result.
const askEvery = 50 * time.Millisecond

// Want asks all replicas for another state of a controller, and returns it once it is in the record. The error is that of ctx.
func (m *Member) Want(ctx context.Context, controller string, change func(*Wanted)) (Wanted, error) {
	for ctx.Err() == nil {
		answer := make(chan Wanted, 1)
		m.command(ctx, func(c *Core) { answer <- c.wishes.ask(controller, change) })
		var asked Wanted
		select {
		case asked = <-answer:
		case <-ctx.Done():
			continue
		}
		for m.Wanted(controller).Generation < asked.Generation && ctx.Err() == nil {
			select {
			case <-time.After(askEvery):
			case <-ctx.Done():
			}
		}
		if m.Wanted(controller) == asked {
			return asked, nil
		} // otherwise, another replica was asked at the same time, or ctx has ended
	}
	return Wanted{}, context.Cause(ctx)
}

// Wanted returns what commands have asked of all replicas for a controller, according to the record.
func (m *Member) Wanted(controller string) (w Wanted) {
	if r := m.View().Record; r != nil {
		w = r.Wanted[controller]
	}
	return w
}
