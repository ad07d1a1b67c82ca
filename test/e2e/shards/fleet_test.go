// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// fleet is replicas that suffer one fault after the other while objects change.
type fleet struct {
	*sharded

	live, all []*replica
	next      []int // faults that have not been chosen yet in this round
	faults    []fault
}

// fault is a fault, and when it occurred.
type fault struct {
	name       string
	begin, end time.Time
}

// replicasOfFleet is the number of replicas.
const replicasOfFleet = 4

// TestShards_Fleet lets replicas be killed, stopped, cut off and replaced, and deletes their Leases, for
// WASMCTL_FLEET_MINUTES. The audit log shows for each object that only its owner has written it, and how long its changes
// have waited.
func TestShards_Fleet(t *testing.T) {
	minutes, _ := strconv.Atoi(os.Getenv("WASMCTL_FLEET_MINUTES"))
	if minutes == 0 {
		t.Skip("SKIPPED: it takes a quarter of an hour: make fleet")
	}
	for name, flags := range map[string][]string{"server": {"--feature-gates=ShardedListAndWatch=true"}, "client": nil} {
		t.Run(name, func(t *testing.T) {
			f := &fleet{sharded: newSharded(t, 16, objectsOfShards(t), flags...)}
			f.flags = nil // the default, 15 s
			f.putAll()
			for range replicasOfFleet {
				f.add()
			}
			f.covered(replicasOfFleet)
			stop := f.churn(10 * time.Second)
			for end := time.Now().Add(time.Duration(minutes) * time.Minute / 2); time.Now().Before(end); {
				f.suffer()
				f.covered(replicasOfFleet)
				e2e.Pause(t.Context(), 2*time.Second+rand.N(10*time.Second)) // what waited has run
			}
			stop()
			f.confirm()
			for _, r := range f.live {
				r.Signal(syscall.SIGTERM)
				r.WantExit(e2e.ExitOK)
			}
			f.wantOwnersOnly(f.all...)
			f.logWaits()
		})
	}
}

// add starts a replica.
func (f *fleet) add() {
	r := f.member()
	f.live, f.all = append(f.live, r), append(f.all, r)
}

// suffer causes a fault, and waits for its end.
func (f *fleet) suffer() {
	i, begin := rand.IntN(len(f.live)), time.Now()
	r := f.live[i]
	name, cause := f.choose(r)
	f.t.Logf("%s: %s", r.lease, name)
	cause()
	if name == "kill" || name == "replace" {
		f.live = slices.Delete(f.live, i, i+1)
	}
	f.faults = append(f.faults, fault{name, begin, time.Now()})
}

// choose returns a fault of a replica, or of all: each once, in random order, and then again.
func (f *fleet) choose(r *replica) (name string, cause func()) {
	if len(f.next) == 0 {
		f.next = rand.Perm(7)
	}
	chosen := f.next[0]
	f.next = f.next[1:]
	switch chosen {
	case 0:
		return "kill", func() {
			r.Signal(syscall.SIGKILL)
			f.add()
			f.fenced(r)
		}
	case 1:
		return "stop for longer than the lease", func() {
			r.Signal(syscall.SIGSTOP)
			f.fenced(r)
			r.Signal(syscall.SIGCONT)
			f.joinsAgain(r)
		}
	case 2:
		return "cut off for longer than the lease", func() {
			r.link.Stall()
			f.fenced(r)
			r.link.Resume()
			f.joinsAgain(r)
		}
	case 3:
		return "outage", func() {
			for _, r := range f.live {
				r.link.Stall()
			}
			e2e.Pause(f.t.Context(), 30*time.Second)
			for _, r := range f.live {
				r.link.Resume()
			}
		}
	case 4:
		return "delete a Lease", func() {
			f.remove(r.lease)
			f.joinsAgain(r)
		}
	case 5:
		return "delete the record", func() {
			f.remove("crowd-shards")
			for _, r := range f.live {
				f.joinsAgain(r)
			}
		}
	}
	return "replace", func() {
		f.add()
		r.Signal(syscall.SIGTERM)
		r.WantExit(e2e.ExitOK)
	}
}

// remove deletes a Lease.
func (f *fleet) remove(lease string) {
	f.t.Helper()
	if err := f.core.CoordinationV1().Leases(f.leases).Delete(f.t.Context(), lease, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// joinsAgain waits until a replica has joined again under another name.
func (f *fleet) joinsAgain(r *replica) {
	f.t.Helper()
	var line struct{ As string }
	if err := json.Unmarshal([]byte(r.WantLine("the replica joins again", `"replica":"`+r.lease+`"`)), &line); err != nil {
		f.t.Fatal(err)
	}
	r.lease = line.As
}

// logWaits logs how long changes waited for the next write of their ConfigMap, by the first fault in that time.
func (f *fleet) logWaits() {
	waits, next := map[string][]time.Duration{}, map[string]time.Time{}
	log := f.audit.all()
	slices.SortFunc(log, func(a, b written) int { return b.Received.Compare(a.Received) })
	for _, w := range log { // the latest first
		if w.Response.Code == 201 { // no replica ran then
			continue
		}
		key := w.Object.Namespace + "/" + w.Object.Name
		switch {
		case w.Object.Resource == "configmaps":
			next[key] = w.Done
		case w.Object.Resource == "configmapgenerators" && w.Object.Subresource == "" && !next[key].IsZero():
			cause := "no fault"
			for _, o := range slices.Backward(f.faults) {
				if o.begin.Before(next[key]) && w.Received.Before(o.end) {
					cause = o.name
				}
			}
			waits[cause] = append(waits[cause], next[key].Sub(w.Received))
		}
	}
	for cause, all := range waits {
		slices.Sort(all)
		f.t.Logf("%s: %d changes waited %v at the median, %v at p99, %v at most", cause, len(all), all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
	}
}
