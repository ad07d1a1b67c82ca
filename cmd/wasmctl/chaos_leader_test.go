package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// replica is a process that takes part in an election.
type replica struct {
	*child
	user   string               // of the API server
	id     string               // the name of its Lease, where replicas share the objects
	link   *devclustertest.Link // to it
	socket string
}

// leaseFlags let a leader go soon, and leave time to renew on a busy machine.
var leaseFlags = []string{
	"--leader-elect", "--leader-elect-lease-duration", "8s", "--leader-elect-renew-deadline", "6s", "--leader-elect-retry-period", "500ms",
}

func (f *fleet) replica(a *audit) *replica {
	f.t.Helper()
	rc, user := a.newUser()
	link, socket := devclustertest.Proxy(f.t, a.cluster), newSocket(f.t)
	args := append([]string{"--socket", socket, "--kubeconfig", writeKubeconfig(f.t, link.Through(rc)), "--leader-elect-resource-namespace", f.ns}, leaseFlags...)
	return &replica{child: f.start(args...), user: user, link: link, socket: socket}
}

// leads waits until the replica has been elected.
func (r *replica) leads() {
	r.t.Helper()
	r.wantLine(`"msg":"became leader"`)
	r.wantLine(`"msg":"reconciling"`)
	r.wantStatus(", leads")
}

// standsBy waits until the replica has seen a leader, and filled its cache.
func (r *replica) standsBy() {
	r.t.Helper()
	r.wantLine(`"msg":"another replica leads`)
	r.wantLine(`"msg":"watches have synced"`)
	r.wantStatus(", standby")
}

func (r *replica) wantStatus(part string) {
	r.t.Helper()
	if text := steer(r.t, "status", r.socket); !strings.Contains(text, part) {
		r.t.Errorf("status does not say %q: %s", part, text)
	}
}

// stopInTheMiddle stops the process, which is paused and has more than enough to
// do, while each of its workers waits for the answer to its first write. The
// answer is there when the process goes on. (It is stopped nowhere
// else: a write that has passed the gate and is not sent yet would be sent when
// the process goes on, which no process can prevent.)
func (r *replica) stopInTheMiddle() {
	r.t.Helper()
	r.link.Stall()
	steer(r.t, "resume", r.socket, "webapp")
	same := 0
	for last := uint64(0); same < 10; {
		st := statusOf(r.t, r.socket)
		if same++; st.Running < 4 || st.Runs != last {
			same = 0
		}
		last = st.Runs
		pause(r.t.Context(), 50*time.Millisecond)
	}
	r.signal(syscall.SIGSTOP)
	r.link.Resume()
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
// change, and the standby replica takes over. That one is then stopped for
// longer than its lease, in the middle of its reconciles; a third takes over,
// and the second goes on: it writes nothing more, and ends. Nothing is lost,
// and no two replicas write at the same time.
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
	steer(t, "pause", second.socket, "webapp")
	f.churn(t.Context(), apps, 2)()
	enginetest.Until(t, "each is asked for", func() bool { return statusOf(t, second.socket).Ready == apps })
	second.stopInTheMiddle()
	before := second.runs()
	third.leads()
	f.churn(t.Context(), apps, 1)()
	f.confirm()
	second.signal(syscall.SIGCONT)
	second.wantExit(exitLost)
	if n := len(second.runs()) - len(before); n < 4 { // runs in which it does nothing more
		t.Errorf("%d runs were in the middle of it, want 4", n)
	}
	f.confirm()
	a.wantHandover(f.ns, second, third)
	third.signal(syscall.SIGTERM)
	third.wantExit(exitOK)
	wantNoneTwice(t, first.runs(), before, third.runs())
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
	wantNoneTwice(t, first.runs(), second.runs())
}
