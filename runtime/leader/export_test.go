// SPDX-License-Identifier: Apache-2.0

package leader

import "k8s.io/client-go/tools/leaderelection/resourcelock"

// NewOn returns an Elector on a lock that is not a Lease.
func NewOn(cfg Config, on resourcelock.Interface) (*Elector, error) {
	return newElector(cfg.withDefaults(), nil, on)
}
