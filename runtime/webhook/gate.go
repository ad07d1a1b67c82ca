// SPDX-License-Identifier: Apache-2.0

package webhook

// gate bounds the requests that one backend judges at a time.
type gate struct {
	slots chan struct{}
	queue int
}

func newGate(concurrency, queue int) gate { return gate{make(chan struct{}, concurrency), queue} }
