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

func TestGate_ClosesWhenTheLeaseIsNotRenewed(t *testing.T) {
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
		if closed(g.Done()) || g.Err() != nil {
			t.Fatal("closed too early")
		}
		<-time.After(1)
		if !errors.Is(g.Err(), ErrLost) { // the clock decides, even if the timer has not run
			t.Errorf("Err is %v", g.Err())
		}
		synctest.Wait()
		if !closed(g.Done()) {
			t.Error("requests in flight go on")
		}
		g.Renewed(time.Now())
		if !errors.Is(g.Err(), ErrLost) {
			t.Error("a closed gate opened again")
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
