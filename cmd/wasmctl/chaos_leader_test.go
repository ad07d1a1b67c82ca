package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// replica is a process that takes part in an election.
type replica struct {
	*child
	user   string // of the API server
	socket string
}

// leaseFlags let a leader go soon, and leave time to renew on a busy machine.
var leaseFlags = []string{
	"--leader-elect", "--leader-elect-lease-duration", "8s", "--leader-elect-renew-deadline", "6s", "--leader-elect-retry-period", "500ms",
}

func (f *fleet) replica(a *audit) *replica {
	f.t.Helper()
	kubeconfig, user := a.replica()
	socket := newSocket(f.t)
	args := append([]string{"--socket", socket, "--kubeconfig", kubeconfig, "--leader-elect-resource-namespace", f.ns}, leaseFlags...)
	return &replica{f.start(args...), user, socket}
}

// leads waits until the replica has been elected.
func (r *replica) leads() {
	r.t.Helper()
	r.wantLine(`"msg":"this replica leads"`)
	r.wantLine(`"msg":"reconciling"`)
	r.wantStatus(", leads")
}

// standsBy waits until the replica has seen a leader, and filled its cache.
func (r *replica) standsBy() {
	r.t.Helper()
	r.wantLine(`"msg":"another replica leads`)
	r.wantLine(`"msg":"watches have synced"`)
	r.wantStatus(", stands by")
}

func (r *replica) wantStatus(part string) {
	r.t.Helper()
	if text := steer(r.t, "status", r.socket); !strings.Contains(text, part) {
		r.t.Errorf("status does not say %q: %s", part, text)
	}
}

// idle waits until the replica has nothing to do, and so no write on its way.
func (r *replica) idle() {
	r.t.Helper()
	until(r.t, "nothing to do", func() bool {
		st := statusOf(r.t, r.socket)
		return st.Ready == 0 && st.Running == 0
	})
}

// wantHandover checks in the audit log that everything that old wrote was
// written before next took the lease, and everything that next wrote after
// that. It returns when that was.
func (a *audit) wantHandover(ns string, old, next *replica) time.Time {
	a.t.Helper()
	leases, after := a.writes(next.user, ns)
	_, before := a.writes(old.user, ns)
	if len(leases) == 0 || len(before) == 0 || len(after) == 0 {
		a.t.Fatalf("the audit log has %d leases, %d writes before and %d after", len(leases), len(before), len(after))
	}
	taken := leases[0]
	for _, w := range before {
		if !w.Done.Before(taken.Received) {
			a.t.Errorf("the old leader wrote at %v, after the lease was taken at %v: %+v", w.Done, taken.Received, w)
		}
	}
	for _, w := range after {
		if !w.Received.After(taken.Received) {
			a.t.Errorf("the new leader wrote at %v, before it had the lease at %v: %+v", w.Received, taken.Received, w)
		}
	}
	return taken.Done
}

// TestLeader_KilledAndStalled: the leader is killed with -9 while objects
// change, and the replica that stands by takes over. That one is then stopped
// for longer than its lease, while objects change; a third takes over, and the
// second goes on again: it writes nothing more, and ends. Nothing is lost, and
// no two replicas write at the same time.
func TestLeader_KilledAndStalled(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	f := newFleet(t, a.cluster)
	const apps = 20
	first := f.replica(a)
	first.leads()
	second := f.replica(a)
	second.standsBy()
	wait := f.churn(t.Context(), apps, 3)
	f.awaitPuts(apps)
	first.wantLine(`"msg":"reconciled"`)
	killed := time.Now()
	first.signal(syscall.SIGKILL)
	<-first.done
	second.leads()
	t.Logf("lease 8s, renewed each 0.5s: the standby leads %v after the kill", time.Since(killed).Round(10*time.Millisecond))
	wait()
	f.confirm()
	taken := a.wantHandover(f.ns, first, second)
	_, writes := a.writes(second.user, f.ns)
	t.Logf("and writes %v after it has the lease", writes[0].Received.Sub(taken).Round(time.Millisecond))
	if n := len(second.runs()); n == 0 || second.runs()[0].begin.Before(killed) {
		t.Errorf("the standby reconciled before it led, or never: %d runs", n)
	}

	third := f.replica(a)
	third.standsBy()
	second.idle() // a write that has passed the gate and is not sent yet could be sent later: no host can take that back
	runs := len(second.runs())
	second.signal(syscall.SIGSTOP)
	wait = f.churn(t.Context(), apps, 2)
	third.leads()
	wait()
	f.confirm()
	second.signal(syscall.SIGCONT)
	second.wantExit(exitLost)
	for _, r := range second.runs()[runs:] {
		t.Logf("the one that was stopped, afterwards: %s", r.text)
	}
	f.confirm()
	a.wantHandover(f.ns, second, third)
	third.signal(syscall.SIGTERM)
	third.wantExit(exitOK)
	wantNoneTwice(t, first.child, second.child, third.child)
}

// TestLeader_HandsOverWhenItStops: an orderly stop gives the lease up after the
// last write, and the standby does not wait for it to run out.
func TestLeader_HandsOverWhenItStops(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	f := newFleet(t, a.cluster)
	const apps = 20
	first := f.replica(a)
	first.leads()
	second := f.replica(a)
	second.standsBy()
	wait := f.churn(t.Context(), apps, 3)
	f.awaitPuts(apps)
	first.wantLine(`"msg":"reconciled"`)
	first.signal(syscall.SIGTERM)
	first.wantExit(exitOK)
	second.leads()
	wait()
	f.confirm()
	a.wantHandover(f.ns, first, second)
	if leases, _ := a.writes(first.user, f.ns); len(leases) == 0 {
		t.Error("the audit log has no lease of the first")
	}
	wantNoneTwice(t, first.child, second.child)
}
