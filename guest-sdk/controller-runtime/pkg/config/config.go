// Package config has the options that all controllers of a manager share.
package config

import (
	"time"

	"github.com/go-logr/logr"
)

// Controller are the options of controllers that name no others. Those of queues
// and caches have no effect: the host has its own.
type Controller struct {
	SkipNameValidation *bool
	// GroupKindConcurrency are the objects reconciled at a time, by
	// "Kind.group".
	GroupKindConcurrency map[string]int
	// MaxConcurrentReconciles is that of all other kinds.
	MaxConcurrentReconciles int
	CacheSyncTimeout        time.Duration
	RecoverPanic            *bool
	NeedLeaderElection      *bool
	EnableWarmup            *bool
	UsePriorityQueue        *bool
	Logger                  logr.Logger
	// ReconciliationTimeout bounds a run, beside the host's bound.
	ReconciliationTimeout time.Duration
}
