// SPDX-License-Identifier: Apache-2.0

// Package ratelimiter has the rate limiter of a controller before version 0.19.
// The host has its own rate limiter.
package ratelimiter

import "time"

// RateLimiter determines when a failed request is retried.
type RateLimiter interface {
	// When returns the delay for item.
	When(item any) time.Duration
	// Forget resets the failures of item.
	Forget(item any)
	// NumRequeues returns the number of failures of item.
	NumRequeues(item any) int
}
