// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// reviewsModel is a random history of rights and watches. Its model of a right is a bool and the time of its last change.
type reviewsModel struct {
	*testing.T

	rnd      *rand.Rand
	api      *revocable
	reviewer *reviewer
	changed  map[place]time.Time
	watches  []*modelWatch
}

// modelWatch is one watch of a tenant.
type modelWatch struct {
	place

	since time.Time
	sub   *watcher.Subscription
	end   func()
}

// step starts or ends a watch, or grants or revokes a right.
func (m *reviewsModel) step() {
	at := place{fmt.Sprint("user", m.rnd.IntN(2)), fmt.Sprint("ns", m.rnd.IntN(2)), "configmaps"}
	n := m.rnd.IntN(10)
	switch {
	case n < 4:
		m.api.mu.Lock()
		defer m.api.mu.Unlock()
		m.api.revoked[at] = !m.api.revoked[at]
		m.changed[at] = time.Now()
	case n < 7 || len(m.watches) == 0:
		m.watch(at)
	default:
		i := m.rnd.IntN(len(m.watches))
		m.watches[i].end()
		m.watches = append(m.watches[:i], m.watches[i+1:]...)
	}
}

func (m *reviewsModel) watch(at place) {
	id, release, err := m.reviewer.As(at.user, "tenant")
	if err != nil {
		m.Fatal(err)
	}
	source := watcher.Source{Resource: schema.GroupVersionResource{Version: "v1", Resource: at.resource}, Namespace: at.namespace, LabelSelector: fmt.Sprint("x!=", m.rnd.IntN(3))}
	w := &modelWatch{place: at, since: time.Now(), sub: id.Watches.Acquire(source, func(context.Context, reflector.Event) {})}
	ctx, cancel := context.WithCancel(m.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.sub.Run(ctx) })
	w.end = func() {
		cancel()
		running.Wait()
		release()
	}
	m.watches = append(m.watches, w)
}

// check compares each watch with its right, which the API server or a review has noticed by now, and each doubt with the watches.
func (m *reviewsModel) check() {
	m.Helper()
	synctest.Wait()
	for _, w := range m.watches {
		age := time.Since(w.since)
		if at, ok := m.changed[w.place]; ok {
			age = min(age, time.Since(at))
		}
		phase := w.sub.Phase()
		switch {
		case m.api.revoked[w.place] && age > reviewEvery+time.Second && phase != watcher.Denied:
			m.Fatalf("%v: the watch is %s, %v after its right was revoked", w.place, phase, age)
		case !m.api.revoked[w.place] && age > 6*time.Second && phase != watcher.Ready:
			m.Fatalf("%v: the watch is %s, %v after its right was granted", w.place, phase, age)
		}
	}
	used := m.reviewer.inUse()
	for v, d := range m.reviewer.doubts {
		if _, ok := used[v.identityKey][v.right]; !ok && time.Since(d.since) > reviewEvery+time.Second {
			m.Fatalf("%v is in doubt and not in use", v)
		}
	}
}

// TestReviews_ModelOfRights: a watch whose right was revoked is denied within one period, also if the right has come and gone before, and comes
// back with it. The reviewer remembers nothing about rights that are not in use.
func TestReviews_ModelOfRights(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &revocable{revoked: map[place]bool{}}
				ids, err := NewIdentities(&rest.Config{Host: "http://fake", Transport: api, QPS: -1}, watcher.Config{Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				m := &reviewsModel{T: t, rnd: rand.New(rand.NewPCG(seed, 0)), api: api, reviewer: newReviewer(ids), changed: map[place]time.Time{}}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { m.reviewer.run(ctx) })
				for range 200 {
					m.step()
					pass(time.Duration(m.rnd.Int64N(int64(8 * time.Second))))
					m.check()
				}
				for _, w := range m.watches {
					w.end()
				}
				cancel()
				running.Wait()
			})
		})
	}
}
