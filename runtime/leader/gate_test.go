// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The gate closes when the lease is not renewed in time, and opens again with the next renewal, unless that counts as a loss.
func TestGate_ClosesUntilTheLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(9 * time.Second)
		<-time.After(time.Hour)
		synctest.Wait()
		if closed(g.Open()) || closed(g.Done()) || g.Err() != nil {
			t.Fatal("a standby has lost something")
		}
		g.Renewed(time.Now())
		<-time.After(8 * time.Second)
		g.Renewed(time.Now().Add(-2 * time.Second)) // it counts from the time when the request was sent
		if !closed(g.Open()) || g.Err() != nil {
			t.Fatal("the leader may not write")
		}
		<-time.After(7*time.Second - 1)
		synctest.Wait()
		first := g.Period()
		if first.Err() != nil || g.Err() != nil {
			t.Fatal("closed too early")
		}
		<-time.After(1)
		synctest.Wait()
		if first.Err() == nil {
			t.Error("requests in flight go on")
		}
		if !errors.Is(g.Err(), ErrLapsed) || g.Leads() || closed(g.Done()) {
			t.Errorf("Err is %v", g.Err())
		}
		waited := make(chan error, 1)
		go func() {
			_, err := g.Renewal(t.Context())
			waited <- err
		}()
		synctest.Wait()
		g.Renewed(time.Now().Add(-10 * time.Second)) // its response came too late
		synctest.Wait()
		if len(waited) > 0 || g.Leads() || g.Valid() {
			t.Error("an old renewal opened the gate")
		}
		g.Renewed(time.Now())
		if err := <-waited; err != nil || !g.Leads() || !g.Valid() || first.Err() == nil {
			t.Error("the gate did not open again, or an old period began again")
		}
		g.Suspend()
		if !errors.Is(g.Err(), ErrLapsed) {
			t.Error("Suspend has no effect")
		}
		g.Renewed(time.Now())
		g.Exit = true
		<-time.After(10 * time.Second)
		synctest.Wait()
		if g.Renewed(time.Now()); !errors.Is(g.Err(), ErrLost) || !closed(g.Done()) {
			t.Errorf("with Exit, Err is %v", g.Err())
		}
		if _, err := g.Renewal(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Renewal returns %v", err)
		}
	})
}

// A guarded gate opens at the first renewal. After a lapse, it opens when that lapse, and no earlier one, was confirmed.
func TestGate_GuardedWaitsForConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(9 * time.Second)
		g.Guarded = true
		lapse := func() uint64 {
			<-time.After(10 * time.Second)
			g.Renewed(time.Now())
			n, err := g.Renewal(t.Context())
			if err != nil || g.Leads() || !g.Valid() || !errors.Is(g.Err(), ErrLapsed) {
				t.Fatalf("after a lapse: leads %t, valid %t, %v, %v", g.Leads(), g.Valid(), g.Err(), err)
			}
			return n
		}
		if g.Renewed(time.Now()); !g.Leads() {
			t.Fatal("it did not open")
		}
		first := lapse()
		second := lapse()
		if g.Confirm(first) || g.Leads() {
			t.Error("opened by an old confirmation")
		}
		if !g.Confirm(second) || !g.Leads() {
			t.Error("it did not open again")
		}
	})
}

func TestGate_FirstReasonStays(t *testing.T) {
	g := NewGate(time.Hour)
	g.Renewed(time.Now())
	g.Close(ErrReleased)
	g.Close(ErrLost)
	if !errors.Is(g.Err(), ErrReleased) || !closed(g.Done()) {
		t.Errorf("Err is %v", g.Err())
	}
}
