// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// objectKey has the size of a reference to an object: group, kind, namespace and name.
type objectKey struct{ group, kind, namespace, name string }

// benchKeys is the number of keys.
const benchKeys = 10_000

// runLoop starts a runner of a job, calls send to feed it, and waits until everything is done.
func runLoop(b *testing.B, run runner.Job[objectKey, string], send func(chan<- []scheduler.Request[objectKey, string])) {
	b.Helper()
	r, err := runner.New(runner.Config[string]{}, run)
	if err != nil {
		b.Fatal(err)
	}
	requests := make(chan []scheduler.Request[objectKey, string])
	ended := make(chan error)
	go func() { ended <- r.Run(b.Context(), runner.Input[objectKey, string]{Requests: requests}) }()
	b.ReportAllocs()
	b.ResetTimer()
	send(requests)
	close(requests)
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Stats().Started)/b.Elapsed().Seconds(), "runs/s")
}

func emptyJob(context.Context, scheduler.Item[objectKey, string]) scheduler.Next[string] {
	return scheduler.Next[string]{}
}

func benchRequests() []scheduler.Request[objectKey, string] {
	reqs := make([]scheduler.Request[objectKey, string], benchKeys)
	for i := range reqs {
		reqs[i].Key = objectKey{"apps", "Deployment", "default", fmt.Sprintf("web-%06d", i)}
	}
	return reqs
}

// BenchmarkRunner_Single is one request per message, like from a watch, through an empty job.
func BenchmarkRunner_Single(b *testing.B) {
	reqs := benchRequests()
	runLoop(b, emptyJob, func(requests chan<- []scheduler.Request[objectKey, string]) {
		for i := range b.N {
			k := i % benchKeys
			requests <- reqs[k : k+1]
		}
	})
}

// BenchmarkRunner_Listing is a first listing of benchKeys objects from its single message to the end of the last run;
// the time is for all of them.
func BenchmarkRunner_Listing(b *testing.B) {
	reqs := benchRequests()
	b.ReportAllocs()
	for b.Loop() {
		r, err := runner.New(runner.Config[string]{}, emptyJob)
		if err != nil {
			b.Fatal(err)
		}
		requests := make(chan []scheduler.Request[objectKey, string], 1)
		requests <- reqs
		close(requests)
		if err := r.Run(b.Context(), runner.Input[objectKey, string]{Requests: requests}); err != nil {
			b.Fatal(err)
		}
		if n := r.Stats().Started; n != benchKeys {
			b.Fatalf("%d runs", n)
		}
	}
	b.ReportMetric(benchKeys*float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// BenchmarkRunner_Requeue is b.N runs of jobs that requeue at once: no request, only the done message.
func BenchmarkRunner_Requeue(b *testing.B) {
	reqs := benchRequests()
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	finished := make(chan struct{}, benchKeys+b.N)
	again := func(context.Context, scheduler.Item[objectKey, string]) scheduler.Next[string] {
		select {
		case <-left:
			return scheduler.Next[string]{Requeue: true}
		default:
			finished <- struct{}{}
			return scheduler.Next[string]{}
		}
	}
	runLoop(b, again, func(requests chan<- []scheduler.Request[objectKey, string]) {
		requests <- reqs
		for range benchKeys {
			<-finished
		}
	})
}

// deep uses about 16 KiB of stack, like a job that decodes, calls a guest and logs.
//
//go:noinline
func deep(n int) byte {
	var frame [1024]byte
	frame[n] = byte(n)
	if n == 0 {
		return frame[0]
	}
	return frame[n] + deep(n-1)
}

// BenchmarkRunner_DeepStack is BenchmarkRunner_Single with a job that needs a deep stack.
func BenchmarkRunner_DeepStack(b *testing.B) {
	reqs := benchRequests()
	job := func(context.Context, scheduler.Item[objectKey, string]) scheduler.Next[string] {
		return scheduler.Next[string]{Requeue: deep(16) == 0}
	}
	runLoop(b, job, func(requests chan<- []scheduler.Request[objectKey, string]) {
		for i := range b.N {
			k := i % benchKeys
			requests <- reqs[k : k+1]
		}
	})
}
