// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// replica is a process that takes part in an election.
type replica struct {
	*e2e.Process
	user   string               // of the API server
	id     string               // if replicas share the objects: the name of its first Lease
	lease  string               // the name of its present Lease
	link   *devclustertest.Link // to it
	socket string
}

func newReplica(f *e2e.Fleet, a *audit) *replica {
	f.T.Helper()
	rc, user := a.newUser()
	link, socket := devclustertest.Proxy(f.T, a.cluster), e2e.NewSocket(f.T)
	args := append([]string{"--leader-elect", "--socket", socket, "--kubeconfig", e2e.WriteKubeconfig(f.T, link.Through(rc)), "--leader-elect-resource-namespace", f.Ns}, e2e.ShortLeases...)
	return &replica{Process: f.Start(args...), user: user, link: link, socket: socket}
}

// leads waits until the replica has been elected.
func (r *replica) leads() {
	r.T.Helper()
	r.WantLine(`"msg":"became leader"`)
	r.WantLine(`"msg":"reconciling"`)
	r.wantStatus(", leads")
}

// standsBy waits until the replica has seen a leader, and filled its cache.
func (r *replica) standsBy() {
	r.T.Helper()
	r.WantLine(`"msg":"another replica leads`)
	r.WantLine(`"msg":"watches have synced"`)
	r.wantStatus(", standby")
}

func (r *replica) wantStatus(part string) {
	r.T.Helper()
	if text := e2e.Steer(r.T, "status", r.socket); !strings.Contains(text, part) {
		r.T.Errorf("status does not say %q: %s", part, text)
	}
}

// stopInTheMiddle stops the process, which is paused and has more than enough to do,
// while each of its workers waits for the answer to its first write. The answer arrives
// when the process continues. (It is not stopped at another point: a write that has
// passed the gate but was not yet sent would be sent then, and no process can prevent
// that.)
func (r *replica) stopInTheMiddle() {
	r.T.Helper()
	r.link.Stall()
	e2e.Steer(r.T, "resume", r.socket, "webapp")
	same := 0
	for last := uint64(0); same < 10; {
		st := e2e.StatusOf(r.T, r.socket)
		if same++; st.Running < 4 || st.Runs != last {
			same = 0
		}
		last = st.Runs
		e2e.Pause(r.T.Context(), 50*time.Millisecond)
	}
	r.Signal(syscall.SIGSTOP)
	r.link.Resume()
}

// wantHandover checks in the audit log that all writes of old came before next took the
// lease, and all writes of next after it. It returns the time of the change.
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

// TestLeader_KilledAndStalled: the leader is killed with -9 while objects change, and
// the standby takes over. It is then stopped for longer than its lease, in the middle of
// its reconciles, and a third replica takes over. When the second continues, it writes
// nothing more, and ends. Nothing is lost, and no two replicas write at the same time.
func TestLeader_KilledAndStalled(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	f := e2e.NewFleet(t, a.cluster)
	const apps = 20
	first := newReplica(f, a)
	first.leads()
	second := newReplica(f, a)
	second.standsBy()
	wait := f.Churn(t.Context(), apps, 3)
	f.AwaitPuts(apps)
	first.WantLine(`"msg":"reconciled"`)
	killed := time.Now()
	first.Signal(syscall.SIGKILL)
	<-first.Done
	second.leads()
	t.Logf("the standby leads %v after the kill", time.Since(killed).Round(10*time.Millisecond))
	wait()
	f.Confirm()
	taken := a.wantHandover(f.Ns, first, second)
	_, writes := a.writes(second.user, f.Ns)
	t.Logf("and writes %v after it has the lease", writes[0].Received.Sub(taken).Round(time.Millisecond))
	if n := len(second.Reconciles()); n == 0 || second.Reconciles()[0].Begin.Before(killed) {
		t.Errorf("the standby reconciled before it led, or never: %d runs", n)
	}

	third := newReplica(f, a)
	third.standsBy()
	e2e.Steer(t, "pause", second.socket, "webapp")
	f.Churn(t.Context(), apps, 2)()
	enginetest.Until(t, "each is asked for", func() bool { return e2e.StatusOf(t, second.socket).Ready == apps })
	second.stopInTheMiddle()
	before := second.Reconciles()
	third.leads()
	f.Churn(t.Context(), apps, 1)()
	f.Confirm()
	second.Signal(syscall.SIGCONT)
	second.WantExit(e2e.ExitLost)
	if n := len(second.Reconciles()) - len(before); n < 4 { // these runs end without further writes
		t.Errorf("%d runs were in the middle of it, want 4", n)
	}
	f.Confirm()
	a.wantHandover(f.Ns, second, third)
	third.Signal(syscall.SIGTERM)
	third.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, first.Reconciles(), before, third.Reconciles())
}

// TestLeader_HandsOverWhenItStops: an orderly stop releases the lease after the last
// write, so the standby does not wait for its end.
func TestLeader_HandsOverWhenItStops(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	f := e2e.NewFleet(t, a.cluster)
	const apps = 20
	first := newReplica(f, a)
	first.leads()
	second := newReplica(f, a)
	second.standsBy()
	wait := f.Churn(t.Context(), apps, 3)
	f.AwaitPuts(apps)
	first.WantLine(`"msg":"reconciled"`)
	first.Signal(syscall.SIGTERM)
	first.WantExit(e2e.ExitOK)
	second.leads()
	wait()
	f.Confirm()
	a.wantHandover(f.Ns, first, second)
	if leases, _ := a.writes(first.user, f.Ns); len(leases) == 0 {
		t.Error("the audit log has no lease of the first")
	}
	e2e.WantNoneTwice(t, first.Reconciles(), second.Reconciles())
}
