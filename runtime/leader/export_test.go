// SPDX-License-Identifier: Apache-2.0

package leader

import "k8s.io/client-go/tools/leaderelection/resourcelock"

// Leader returns the identity of the leader as seen by this replica; empty if it has not seen one.
func (e *Elector) Leader() string {
	if seen := e.leader.Load(); seen != nil {
		return *seen
	}
	return ""
}

// NewOn returns an Elector on a lock that is not a Lease.
func NewOn(cfg Config, on resourcelock.Interface) (*Elector, error) {
	return newElector(cfg.withDefaults(), nil, on)
}
