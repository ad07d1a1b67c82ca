// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_019

// Package queue has the type of the queues that handlers write to. Programs for
// versions before 0.19 get another type.
package queue

import (
	"k8s.io/client-go/util/workqueue"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Of is a queue of requests.
type Of[request comparable] = workqueue.TypedRateLimitingInterface[request]

// Item is the item type of most queues.
type Item = reconcile.Request
