// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Times of the model.
const (
	modelValidity = 8 * time.Minute
	modelMargin   = 5 * time.Second
	modelGrace    = time.Minute
)

// world is a dumb model of a group of replicas, the record where they publish, and the configurations that they write. Each write of a
// configuration fails if it was changed after it was read.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Time
	record   map[string][]byte
	bundles  [3][]byte // of configurations; nil if it does not exist
	versions [3]int
	replicas []*replica
	started  int
	history  [3][]version
	stepped  time.Time // when the clock of a replica was changed last
}

// version is a bundle that was written at a time.
type version struct {
	at     time.Time
	bundle []byte
}

// replica is a process. It carries out one step of a round at a time, so the steps of several replicas interleave.
type replica struct {
	*Authority

	name      string
	offset    time.Duration // of its clock
	leftovers Leftovers
	published []byte
	step      int
	began     time.Time
	versions  [3]int
	bundles   [3][]byte
	bundle    []byte
	alone     bool
	failed    bool
}

func (w *world) start() {
	w.started++
	r := &replica{name: fmt.Sprint("pod-", w.started), leftovers: Leftovers{}, offset: time.Duration(w.rand.IntN(60)-30) * time.Second}
	r.Authority = New(Config{Replica: r.name, Hosts: []string{"hook.system.svc"}, Validity: modelValidity, Margin: modelMargin})
	w.replicas = append(w.replicas, r)
}

// advance carries out the next step of a replica's round.
func (w *world) advance(r *replica) {
	now := w.now.Add(r.offset)
	switch lost := w.rand.IntN(10) == 0; r.step {
	case 0:
		if _, err := r.Renew(now); err != nil {
			w.t.Fatal(err)
		}
		r.failed, r.alone, r.began = false, false, now
		if !lost {
			w.record[r.name] = r.Published()
		}
		r.published = r.Published()
	case 1:
		r.versions, r.bundles = w.versions, w.bundles
	case 2:
		if !bytes.Equal(w.record[r.name], r.published) { // the write was lost, or the record was
			r.step = 0
			return
		}
		var replicas, existing [][]byte
		for _, b := range w.record {
			replicas = append(replicas, b)
		}
		for _, b := range r.bundles {
			existing = append(existing, b)
		}
		r.bundle = r.leftovers.Bundle(now, modelGrace, replicas, existing)
		r.alone = len(replicas) == 1
	case 3, 4, 5:
		i := r.step - 3
		create := r.bundles[i] == nil && w.rand.IntN(3) == 0 && r.Ready() == nil
		switch {
		case r.bundles[i] == nil && !create:
		case w.versions[i] != r.versions[i]:
			r.failed = true
		case lost: // the replica does not know whether it was written
			r.failed = true
			if w.rand.IntN(2) == 0 {
				w.write(i, r.bundle)
			}
		default:
			w.write(i, r.bundle)
			r.bundles[i] = r.bundle
		}
	case 6:
		if !r.failed {
			o := Observation{Began: r.began, Ended: now, Alone: r.alone}
			for _, b := range r.bundles {
				if b != nil {
					o.Bundles, o.Alone = append(o.Bundles, b), false
				}
			}
			r.Observe(o)
		}
	}
	r.step = (r.step + 1) % 7
}

// write stores a bundle.
func (w *world) write(i int, bundle []byte) {
	w.bundles[i] = bundle
	w.versions[i]++
	w.history[i] = append(w.history[i], version{w.now, bundle})
	if n := len(decode(bundle)); n > maxBundle {
		w.t.Fatalf("configuration %d has %d certificates", i, n)
	}
}

// check fails if a client could not verify what a replica serves. A client may use a bundle that was replaced less than the margin ago.
func (w *world) check(r *replica) {
	c := r.served.Load()
	if c == nil {
		return // not ready
	}
	if offered, err := r.GetCertificate(nil); err != nil || offered != c {
		w.t.Fatalf("replica %s is ready, and serves another certificate: %v", r.name, err)
	}
	if w.now.After(c.Leaf.NotAfter) || w.now.Before(c.Leaf.NotBefore) {
		w.t.Fatalf("replica %s serves a certificate that is not valid", r.name)
	}
	text := encode(c.Leaf)
	for i, versions := range w.history {
		for j, v := range versions {
			old := j+1 < len(versions) && (w.now.Sub(versions[j+1].at) >= modelMargin || w.now.Sub(w.stepped) < 2*modelMargin)
			if !old && !bytes.Contains(v.bundle, text) {
				w.t.Fatalf("replica %s is not trusted by version %d of configuration %d, in step %d", r.name, j, i, r.step)
			}
		}
		for len(versions) > 1 && w.now.Sub(versions[1].at) >= 2*modelMargin {
			versions = versions[1:]
		}
		w.history[i] = versions
	}
}

// expired fails if a bundle has a certificate that expired long ago. Somebody writes each bundle in half of the validity.
func (w *world) expired() {
	for i, b := range w.bundles {
		for _, c := range decode(b) {
			if age := w.now.Sub(c.NotAfter); age > modelValidity/2 {
				w.t.Fatalf("configuration %d has a certificate that expired %v ago", i, age)
			}
		}
	}
}

// act does something at random.
func (w *world) act() {
	switch w.rand.IntN(200) {
	case 0:
		if len(w.replicas) < 4 {
			w.start()
		}
	case 1: // ends cleanly
		if len(w.replicas) > 1 {
			delete(w.record, w.replicas[0].name)
			w.replicas = w.replicas[1:]
		}
	case 2: // crashes
		if len(w.replicas) > 1 {
			w.replicas = w.replicas[:len(w.replicas)-1]
		}
	case 3: // somebody deletes the record
		if w.rand.IntN(20) == 0 {
			clear(w.record)
		}
	case 4:
		r := w.replicas[w.rand.IntN(len(w.replicas))]
		r.offset = time.Duration(w.rand.IntN(60)-30) * time.Second
		w.stepped = w.now
	case 5:
		w.now = w.now.Add(time.Duration(w.rand.IntN(60)) * time.Second) // nobody runs
	}
	w.now = w.now.Add(time.Duration(w.rand.IntN(400)) * time.Millisecond)
	r := w.replicas[w.rand.IntN(len(w.replicas))]
	w.advance(r)
	for _, r := range w.replicas {
		w.check(r)
	}
}

// TestAuthority_ServesOnlyTrustedCertificates: whatever happens to replicas, writes and clocks, each served certificate is in the bundle of
// every configuration, and has not expired.
func TestAuthority_ServesOnlyTrustedCertificates(t *testing.T) {
	const worlds, steps = 4, 5000
	rotations := 0
	for seed := range uint64(worlds) {
		w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), record: map[string][]byte{}}
		w.start()
		last := map[string]*tls.Certificate{}
		for range steps {
			w.act()
			for _, r := range w.replicas {
				if c := r.served.Load(); c != nil && c != last[r.name] {
					rotations++
					last[r.name] = c
				}
			}
		}
		w.expired()
	}
	if rotations < 10*worlds {
		t.Errorf("only %d certificates were served", rotations)
	}
}
