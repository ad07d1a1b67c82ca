// SPDX-License-Identifier: Apache-2.0

// Package config has the options shared by all controllers of a manager.
package config

import (
	"time"

	"github.com/go-logr/logr"
)

// Controller has the defaults of the options of controllers. The options of
// queues and caches have no effect, because the host has its own.
type Controller struct {
	SkipNameValidation *bool
	// GroupKindConcurrency is the number of objects reconciled at a time, by
	// "Kind.group".
	GroupKindConcurrency map[string]int
	// MaxConcurrentReconciles is the concurrency of all other kinds.
	MaxConcurrentReconciles int
	CacheSyncTimeout        time.Duration
	RecoverPanic            *bool
	NeedLeaderElection      *bool
	EnableWarmup            *bool
	UsePriorityQueue        *bool
	Logger                  logr.Logger
	// ReconciliationTimeout bounds a run, in addition to the limit of the host.
	ReconciliationTimeout time.Duration
}
