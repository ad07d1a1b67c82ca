// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Leader has the flags of leader election, which have the same names as in Kubernetes' own components,
// and of sharding.
type Leader struct {
	Elect           bool
	Shards          int
	Namespace, Name string
	lease           time.Duration
	renew           time.Duration
	retry           time.Duration
	lost            string
}

// The values of --lease-lost.
const (
	lostRejoin = "rejoin"
	lostExit   = "exit"
)

func (o *Leader) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.Elect, "leader-elect", false, "Reconcile only while this replica is the elected leader")
	f.IntVar(&o.Shards, "shards", 0, "Share the objects with the other replicas, split into `N` parts, instead of electing a leader")
	f.StringVar(&o.Namespace, "leader-elect-resource-namespace", "", "Put the Lease into this `namespace` (default: the namespace of the pod, or default)")
	f.StringVar(&o.Name, "leader-elect-resource-name", "", "Name the Lease (default: wasmctl- and the controller's name)")
	f.DurationVar(&o.lease, "leader-elect-lease-duration", leader.DefaultLeaseDuration, "Wait this long before taking over from a leader that does not renew its lease")
	f.DurationVar(&o.renew, "leader-elect-renew-deadline", leader.DefaultRenewDeadline, "Check who has the lease after failing to renew it for this long")
	f.DurationVar(&o.retry, "leader-elect-retry-period", leader.DefaultRetryPeriod, "Renew or request the lease at this interval")
	f.StringVar(&o.lost, "lease-lost", lostRejoin, "If the lease cannot be renewed in time, wait and take part again (rejoin), or `exit`")
}

// validate checks the flags early: client-go would refuse some values only later.
func (o *Leader) validate() error {
	switch {
	case o.Shards < 0 || o.Shards > slots.Max:
		return fmt.Errorf("--shards %d: must be 1 to %d: several times the number of replicas", o.Shards, slots.Max)
	case o.Shards > 0 && o.Elect:
		return errors.New("--shards and --leader-elect cannot be combined: with --shards all replicas reconcile")
	case o.Shards > 0 && (o.lease%time.Second != 0 || o.lease < 3*o.retry):
		return fmt.Errorf("--leader-elect-lease-duration %v: with --shards it must be whole seconds, and three times the retry period of %v", o.lease, o.retry)
	case o.lost != lostRejoin && o.lost != lostExit:
		return fmt.Errorf("--lease-lost %q: must be %s or %s", o.lost, lostRejoin, lostExit)
	case o.retry <= 0:
		return errors.New("--leader-elect-retry-period must be positive")
	case o.renew <= o.retry*6/5:
		return fmt.Errorf("--leader-elect-renew-deadline %v: must be more than 1.2 times the retry period of %v", o.renew, o.retry)
	case o.lease <= o.renew:
		return fmt.Errorf("--leader-elect-lease-duration %v: must be more than the renew deadline of %v", o.lease, o.renew)
	case o.lease < time.Second:
		return fmt.Errorf("--leader-elect-lease-duration %v: must be at least 1s", o.lease)
	}
	return nil
}

// Replicates reports whether other replicas may run.
func (o *Leader) Replicates() bool { return o.Elect || o.Shards > 0 }
