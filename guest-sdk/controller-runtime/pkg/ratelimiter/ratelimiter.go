// Package ratelimiter has the limiter of a controller before version 0.19. The host has
// its own.
package ratelimiter

import "time"

// RateLimiter says when a failed request is tried again.
type RateLimiter interface {
	// When returns how long item waits.
	When(item any) time.Duration
	// Forget ends the failures of item.
	Forget(item any)
	// NumRequeues returns how often item has failed.
	NumRequeues(item any) int
}
