// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/wasmctl/wasmctl/runtime/leader"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// lease is a Lease shared by all replicas.
type lease struct {
	mu      sync.Mutex
	latency time.Duration                      // guarded by mu
	record  *resourcelock.LeaderElectionRecord // guarded by mu
	version int                                // guarded by mu
	renewed time.Time                          // guarded by mu; of the last write
	reads   int                                // guarded by mu
	failing bool                               // guarded by mu; requests fail
	exit    bool                               // Config.ExitOnLapse of the replicas
}

// view is one replica's access to the lease. It belongs to one goroutine, except dead.
type view struct {
	*lease
	id   string
	dead context.Context //nolint:containedctx // ends with the process
	seen int             // the version of the last read or write
	cut  *atomic.Bool    // no request arrives
}

func (v *view) Identity() string   { return v.id }
func (v *view) Describe() string   { return "ns/test" }
func (v *view) RecordEvent(string) {}

// request simulates the path of a request: a killed process sends none.
func (v *view) request(ctx context.Context) error {
	v.mu.Lock()
	latency, failing := v.latency, v.failing
	v.mu.Unlock()
	select {
	case <-time.After(latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	if failing || v.dead.Err() != nil {
		return errors.New("no connection")
	}
	if v.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (v *view) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := v.request(ctx); err != nil {
		return nil, nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	if v.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, "test")
	}
	v.seen = v.version
	r := *v.record
	raw, err := json.Marshal(r)
	return &r, raw, err
}

func (v *view) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	v.mu.Lock()
	v.seen = -1
	if v.record == nil {
		v.seen = v.version
	}
	v.mu.Unlock()
	return v.Update(ctx, r)
}

func (v *view) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := v.request(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen != v.version {
		return apierrors.NewConflict(leases, "test", errors.New("changed"))
	}
	if age := time.Since(r.RenewTime.Time); age > v.latency {
		return fmt.Errorf("written as of %v ago", age)
	}
	v.version++
	v.seen, v.record, v.renewed = v.version, &r, time.Now()
	return nil
}

// fail makes all requests fail, or not.
func (l *lease) fail(failing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = failing
}

// process starts a replica; kill ends it like kill -9.
func (l *lease) process(t *testing.T, id string) (e *leader.Elector, kill func()) {
	t.Helper()
	return l.processWith(t, id, &atomic.Bool{})
}

// processWith starts a replica whose connection to the API server can be cut.
func (l *lease) processWith(t *testing.T, id string, cut *atomic.Bool) (e *leader.Elector, kill func()) {
	t.Helper()
	dead, kill := context.WithCancel(t.Context())
	e, err := leader.NewOn(leader.Config{Namespace: "ns", Name: "test", Identity: id, ExitOnLapse: l.exit}, &view{lease: l, id: id, dead: dead, cut: cut})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(running)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return e, kill
}

// A standby takes over when the lease ends, whenever the leader was killed and whenever the standby began: no sooner
// than the lease lasts after the last renewal, and at most a small fraction of it later.
func TestElector_TakesOverWhenTheLeaseEnds(t *testing.T) {
	const margin = leader.DefaultRetryPeriod / 4
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 19))
			within := func(d time.Duration) { <-time.After(time.Duration(rng.Int64N(int64(d)))) }
			l := &lease{latency: time.Duration(rng.Int64N(int64(30 * time.Millisecond)))}
			first, kill := l.process(t, "first")
			<-first.Gate().Open()
			within(10 * time.Second)
			second, _ := l.process(t, "second")
			within(3 * time.Minute)
			for second.Leader() != "first" { // it existed for a while
				<-time.After(leader.DefaultRetryPeriod)
			}
			<-time.After(2 * leader.DefaultRetryPeriod)
			l.mu.Lock()
			begin, reads := time.Now(), l.reads
			l.mu.Unlock()
			<-time.After(time.Minute)
			l.mu.Lock()
			if n, most := l.reads-reads, 4*int(time.Since(begin)/leader.DefaultRetryPeriod); n > most {
				t.Errorf("seed %d: %d reads in a minute, want at most %d", seed, n, most)
			}
			l.mu.Unlock()
			within(10 * time.Second)
			kill()
			killed := time.Now()
			synctest.Wait()
			l.mu.Lock()
			renewed := l.renewed
			l.mu.Unlock()
			<-second.Gate().Open()
			if first.Gate().Leads() {
				t.Fatalf("seed %d: the one that was killed may write", seed)
			}
			if took := time.Since(renewed); took < leader.DefaultLeaseDuration || took > leader.DefaultLeaseDuration+margin {
				t.Errorf("seed %d: took over %v after the last renewal, %v after the kill", seed, took, time.Since(killed))
			}
		})
	}
}

// A leader that could not renew the lease, and is back when another replica has it, does not release the lease of the other.
func TestElector_ReleasesOnlyItsOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{latency: 5 * time.Millisecond}
		first, _ := l.process(t, "first")
		<-first.Gate().Open()
		<-time.After(time.Minute)
		set := func(latency time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.latency = latency
		}
		set(time.Hour) // it hangs in its next renewal
		<-time.After(leader.DefaultRenewDeadline / 2)
		set(5 * time.Millisecond)
		l.mu.Lock()
		l.version++
		l.record = &resourcelock.LeaderElectionRecord{HolderIdentity: "second", RenewTime: metav1.Now(), LeaseDurationSeconds: 15}
		l.mu.Unlock()
		<-time.After(time.Minute)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !errors.Is(first.Gate().Err(), leader.ErrLost) || l.record.HolderIdentity != "second" {
			t.Errorf("gate: %v, the lease has %+v", first.Gate().Err(), l.record)
		}
	})
}

// thefts are changes of a lease that no election makes. The caller must hold the lease's mutex.
var thefts = map[string]func(*lease){
	"another holder": func(l *lease) {
		l.record = &resourcelock.LeaderElectionRecord{HolderIdentity: "thief", RenewTime: metav1.Now(), LeaseDurationSeconds: 15}
	},
	"no holder": func(l *lease) {
		r := *l.record
		l.record, r.HolderIdentity = &r, ""
	},
	"deleted": func(l *lease) { l.record = nil },
}

func (l *lease) steal(how func(*lease)) (version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	how(l)
	return l.version
}

// Whenever the lease is taken from a leader, and even if that cannot notice: no two lead at once, and one does in the end. That is the same one
// if no other can have had the lease.
func TestElector_NoTheftMakesTwoLeaders(t *testing.T) {
	for name, how := range thefts {
		for seed := range uint64(100) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 35))
				within := func(d time.Duration) { <-time.After(time.Duration(rng.Int64N(int64(d)))) }
				l, cut := &lease{latency: time.Duration(rng.Int64N(int64(30 * time.Millisecond)))}, &atomic.Bool{}
				first, _ := l.processWith(t, "first", cut)
				<-first.Gate().Open()
				second, _ := l.process(t, "second")
				within(time.Minute)
				cut.Store(seed%2 == 0)
				l.steal(how)
				all := []*leader.Elector{first, second}
				if !cut.Load() { // a process that starts now does not know that there was a leader
					third, _ := l.process(t, "third")
					all = append(all, third)
				}
				for end := time.Now().Add(2 * leader.DefaultLeaseDuration); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
					if leading(all) > 1 {
						t.Fatalf("%s, seed %d: two lead", name, seed)
					}
				}
				if same := name != "another holder" && !cut.Load(); leading(all) != 1 || first.Gate().Leads() != same {
					t.Errorf("%s, seed %d: %d lead, the first one: %t", name, seed, leading(all), first.Gate().Leads())
				}
			})
		}
	}
}

func leading(all []*leader.Elector) (n int) {
	for _, e := range all {
		if e.Gate().Leads() {
			n++
		}
	}
	return n
}

// A leader that could not renew the lease for longer than it lasts continues if no other replica has taken it, within a retry period.
func TestElector_OutlivesAnOutage(t *testing.T) {
	for _, exit := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &lease{latency: 5 * time.Millisecond, exit: exit}
			first, _ := l.process(t, "first")
			<-first.Gate().Open()
			<-time.After(time.Minute)
			l.fail(true)
			<-time.After(leader.DefaultLeaseDuration)
			if first.Gate().Leads() {
				t.Fatal("it writes without a valid lease")
			}
			<-time.After(time.Minute)
			l.fail(false)
			<-time.After(leader.DefaultRetryPeriod / 2)
			if first.Gate().Leads() == exit {
				t.Errorf("with exit %t, it leads: %t", exit, !exit)
			}
		})
	}
}

// A leader stops writing when it sees that the lease is not its own, at the next renewal, and does not release the lease of another. It takes a
// lease without a holder again, unless a lapse counts as a loss, or it was cut off for long enough that another one may have had the lease.
func TestElector_StopsOnSight(t *testing.T) {
	for name, how := range thefts {
		for _, alone := range []string{"seen", "exit", "late"} {
			synctest.Test(t, func(t *testing.T) {
				l, cut := &lease{latency: 5 * time.Millisecond, exit: alone == "exit"}, &atomic.Bool{}
				first, _ := l.processWith(t, "first", cut)
				<-first.Gate().Open()
				<-time.After(time.Minute)
				before := first.Gate().Period()
				cut.Store(alone == "late")
				changed := l.steal(how)
				if cut.Load() {
					<-time.After(leader.DefaultLeaseDuration * 95 / 100)
					cut.Store(false)
				}
				<-time.After(leader.DefaultRetryPeriod/2 + 6*l.latency)
				again := alone == "seen" && name != "another holder"
				if before.Err() == nil || first.Gate().Leads() != again || !again && alone != "late" && !errors.Is(first.Gate().Err(), leader.ErrLost) {
					t.Errorf("%s, %s: the leader may write: %v, %v", name, alone, before.Err(), first.Gate().Err())
				}
				<-time.After(time.Minute)
				l.mu.Lock()
				defer l.mu.Unlock()
				if !again && (l.version != changed || !errors.Is(first.Gate().Err(), leader.ErrLost)) {
					t.Errorf("%s, %s: the former leader wrote %+v: %v", name, alone, l.record, first.Gate().Err())
				}
				if again && l.record.HolderIdentity != "first" {
					t.Errorf("%s: the lease is %+v", name, l.record)
				}
			})
		}
	}
}

// Of several standbys, one takes over, and the others remain standbys.
func TestElector_OneOfManyTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{latency: 5 * time.Millisecond}
		first, kill := l.process(t, "first")
		<-first.Gate().Open()
		var others []*leader.Elector
		for i := range 5 {
			e, _ := l.process(t, fmt.Sprint("other-", i))
			others = append(others, e)
			<-time.After(700 * time.Millisecond)
		}
		<-time.After(time.Minute)
		kill()
		<-time.After(leader.DefaultLeaseDuration + leader.DefaultRetryPeriod)
		leading := 0
		for range 60 {
			leading = 0
			for _, e := range others {
				if e.Gate().Leads() {
					leading++
				}
			}
			if leading > 1 {
				break
			}
			<-time.After(time.Second)
		}
		if leading != 1 {
			t.Errorf("%d lead", leading)
		}
	})
}
