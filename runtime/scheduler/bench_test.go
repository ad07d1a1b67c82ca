// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// objectKey has the size of a reference to an object: group, kind, namespace and name.
type objectKey struct{ group, kind, namespace, name string }

func newKey(i int) objectKey {
	return objectKey{"apps", "Deployment", "default", fmt.Sprintf("web-%06d", i)}
}

type (
	objectScheduler = scheduler.Scheduler[objectKey, string]
	objectRequest   = scheduler.Request[objectKey, string]
)

// newBench returns a scheduler in which n keys have a pending timer, as after a first round of reconciles.
func newBench(n int) (*objectScheduler, []objectKey) {
	s := scheduler.New[objectKey, string](scheduler.Config[string]{})
	keys := make([]objectKey, n)
	for i := range keys {
		keys[i] = newKey(i)
		s.Schedule(epoch, objectRequest{Key: keys[i], At: epoch.Add(time.Hour + time.Duration(i)*time.Millisecond)})
	}
	return s, keys
}

// BenchmarkScheduler_AddPop is one key: add, pop, done.
func BenchmarkScheduler_AddPop(b *testing.B) {
	s := scheduler.New[objectKey, string](scheduler.Config[string]{})
	key := newKey(0)
	b.ReportAllocs()
	for b.Loop() {
		s.Schedule(epoch, objectRequest{Key: key, Msg: "changed"})
		s.Pop(epoch)
		s.Done(key)
	}
}

// BenchmarkScheduler_AddPop100k is one round of 100,000 keys with a timer: a trigger absorbs it, the key is run, the
// timer is set.
func BenchmarkScheduler_AddPop100k(b *testing.B) {
	s, keys := newBench(100_000)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		key := keys[i%len(keys)]
		i++
		s.Schedule(epoch, objectRequest{Key: key, Msg: "changed"})
		s.Pop(epoch)
		s.Done(key)
		s.Schedule(epoch, objectRequest{Key: key, At: epoch.Add(2 * time.Hour)})
	}
}

// BenchmarkScheduler_AddDuplicate adds a key that is already ready.
func BenchmarkScheduler_AddDuplicate(b *testing.B) {
	s, keys := newBench(100_000)
	for _, key := range keys {
		s.Schedule(epoch, objectRequest{Key: key})
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		s.Schedule(epoch, objectRequest{Key: keys[i%len(keys)], Msg: "changed"})
		i++
	}
}

// BenchmarkScheduler_Burst100k adds 100,000 unknown keys and processes them; the figure is for all of them.
func BenchmarkScheduler_Burst100k(b *testing.B) {
	_, keys := newBench(100_000)
	s := scheduler.New[objectKey, string](scheduler.Config[string]{})
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			s.Schedule(epoch, objectRequest{Key: key})
		}
		for it, ok := s.Pop(epoch); ok; it, ok = s.Pop(epoch) {
			s.Done(it.Key)
		}
	}
}

// BenchmarkScheduler_PopWith10kBlocked is rule 5: 10,000 keys run and have been triggered again, and one free key is
// processed repeatedly.
func BenchmarkScheduler_PopWith10kBlocked(b *testing.B) {
	s, keys := newBench(10_001)
	free, busy := keys[0], keys[1:]
	for _, key := range busy {
		s.Schedule(epoch, objectRequest{Key: key})
		s.Pop(epoch)
		s.Schedule(epoch, objectRequest{Key: key})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Schedule(epoch, objectRequest{Key: free})
		if it, ok := s.Pop(epoch); !ok || it.Key != free {
			b.Fatal("the free key was not handed out")
		}
		s.Done(free)
	}
}

// BenchmarkScheduler_AddDebounced adds a key that is already being debounced, among 100,000 timers: its timer moves.
func BenchmarkScheduler_AddDebounced(b *testing.B) {
	_, keys := newBench(100_000)
	s := scheduler.New[objectKey, string](scheduler.Config[string]{Debounce: scheduler.Debounce{Quiet: time.Minute}})
	now := epoch
	for _, key := range keys {
		s.Schedule(now, objectRequest{Key: key})
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(1)
		s.Schedule(now, objectRequest{Key: keys[i%len(keys)], Msg: "changed"})
		i++
	}
}
