// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_019

// Package queue has the type of the queues that handlers write to before version 0.19.
package queue

import "k8s.io/client-go/util/workqueue"

// Of is a queue with items of any type.
type Of[request comparable] = workqueue.RateLimitingInterface //nolint:staticcheck // the type in those versions

// Item is the item type of the queue.
type Item = any
