//go:build wasmctl_before_019

// Package queue has the type of the queues that handlers write to before version 0.19.
package queue

import "k8s.io/client-go/util/workqueue"

// Of is a queue of anything.
type Of[request comparable] = workqueue.RateLimitingInterface //nolint:staticcheck // what those versions have

// Item is what it has.
type Item = any
