// SPDX-License-Identifier: Apache-2.0

//go:build go1.25

package priorityqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// A queue returns each item once, delayed items when they are due.
func TestQueue_GivesEachItemOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[string]("test")
		defer q.ShutDown()
		q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour}, "later")
		q.AddWithOpts(priorityqueue.AddOpts{}, "a", "a", "b")
		q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, "c")
		start := time.Now()
		for _, want := range []string{"a", "b", "c", "later"} {
			got, priority, done := q.GetWithPriority()
			if got != want || priority != 0 || done {
				t.Errorf("%s, want %s", got, want)
			}
			q.Done(got)
		}
		if time.Since(start) < time.Hour {
			t.Error("too early")
		}
	})
}
