// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// runnablesName is the name of the controller that runs the Runnables.
const runnablesName = "runnables"

// anchor is the Namespace that this controller reconciles. Each cluster has it.
const anchor = metav1.NamespaceDefault

// runnables runs the Runnables of a program, in a controller of their own that
// reconciles one object. The goroutines of a module make progress only during
// calls of the host, so each run resumes the Runnables until all of them wait,
// and requests the next run.
type runnables struct {
	life context.Context // ends with the program

	waiting []Runnable // to be started by the next run
	running int
	ended   chan ended
	active  time.Time // when the Runnables last did something
}

// ended is the result of a Runnable.
type ended struct {
	Runnable

	err error
}

func (r *runnables) add(one Runnable) { r.waiting = append(r.waiting, one) }

// Declare implements declare.Declarer.
func (r *runnables) Declare() (*declare.Controller, error) {
	r.ended = make(chan ended)
	of := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	return &declare.Controller{
		Name: runnablesName, Concurrency: 1, Anchor: anchor, Reconcile: r.Reconcile,
		Watches: []declare.Watch{{Object: of, Handler: &handler.EnqueueRequestForObject{}}},
	}, nil
}

// Reconcile resumes the Runnables. A Runnable that fails is started again by
// the next run, which the host delays as after any error.
func (r *runnables) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	calls, began := run.Calls(), len(r.waiting)
	r.start()
	settle()
	done, err := r.collect()
	if now := time.Now(); began+done > 0 || run.Calls() != calls {
		r.active = now
	}
	if err != nil || r.running == 0 {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pause(time.Since(r.active))}, nil
}

func (r *runnables) start() {
	for _, one := range r.waiting {
		r.running++
		go func() { r.ended <- ended{one, one.Start(r.life)} }()
	}
	r.waiting = nil
}

// collect returns the number of Runnables that have ended, and their errors.
func (r *runnables) collect() (done int, err error) {
	for {
		select {
		case e := <-r.ended:
			r.running--
			done++
			if e.err != nil {
				r.add(e.Runnable)
				err = errors.Join(err, fmt.Errorf("runnable[%s]: %w", nameOf(e.Runnable), e.err))
			}
		default:
			return done, err
		}
	}
}

// The shortest and the longest time between two runs of waiting Runnables.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
)

// pause returns the time until the next run, if the Runnables have done nothing
// for that long. A timer of theirs is late by that time at most. A module cannot
// see when its next timer is due.
func pause(quiet time.Duration) time.Duration {
	return min(max(quiet/8, shortestPause), longestPause)
}

// settled is the number of times that settle lets other goroutines run.
const settled = 100

// settle lets other goroutines run until all of them wait. A module has one
// thread, so each goroutine runs until it waits.
func settle() {
	for n := 0; n < settled; n++ {
		calls := run.Calls()
		goruntime.Gosched()
		if run.Calls() != calls {
			n = 0
		}
	}
}
