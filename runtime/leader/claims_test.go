// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apiv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/wasmctl/wasmctl/runtime/leader"
)

// shelf is the Leases of a namespace, which answers late.
type shelf struct {
	coordinationv1.LeaseInterface

	within func(time.Duration)

	mu      sync.Mutex
	leases  map[string]apiv1.Lease // guarded by mu
	version int                    // guarded by mu
	running map[string]bool        // by group; guarded by mu
	denied  bool                   // guarded by mu
}

func (s *shelf) List(context.Context, metav1.ListOptions) (*apiv1.LeaseList, error) {
	s.within(50 * time.Millisecond)
	s.mu.Lock()
	list, denied := &apiv1.LeaseList{Items: slices.Collect(maps.Values(s.leases))}, s.denied
	s.mu.Unlock()
	s.within(50 * time.Millisecond)
	if denied {
		return nil, apierrors.NewForbidden(leases, "", errors.New("no list"))
	}
	return list, nil
}

// claimant is a replica of a group.
type claimant struct {
	*shelf

	name   string
	claims string // of its Lease; guarded by mu
}

func (r *claimant) Publish(_ context.Context, c leader.Claims) error {
	r.within(50 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	c.By = r.name
	r.claims = c.Text()
	r.renew()
	return nil
}

// renew writes the Lease of the replica. The caller must hold mu.
func (r *claimant) renew() {
	r.version++
	r.leases[r.name] = apiv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: r.name, ResourceVersion: fmt.Sprint(r.version), Annotations: map[string]string{leader.ClaimsAnnotation: r.claims}},
		Spec:       apiv1.LeaseSpec{HolderIdentity: &r.name, LeaseDurationSeconds: new(int32(15))},
	}
}

// live renews the Lease until ctx ends.
func (r *claimant) live(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		r.renew()
		r.mu.Unlock()
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
	}
}

func (r *claimant) registrar(derived bool) *leader.Registrar {
	return &leader.Registrar{
		Leases: r.shelf, Publisher: r, Group: r.name, Derived: derived, Period: 2 * time.Second, Lease: 15 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
}

// Of groups that claim the same objects, whenever they start, and are killed: no two run, one does in the end, and one that runs is not
// replaced by one that starts later.
func TestRegistrar_OneOfRivalGroupsRuns(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(seed, 1))
			within := func(d time.Duration) {
				mu.Lock()
				d = time.Duration(rng.Int64N(int64(d)))
				mu.Unlock()
				<-time.After(d)
			}
			s := &shelf{within: within, leases: map[string]apiv1.Lease{}, running: map[string]bool{}}
			start := func(name string, killed bool) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				r := &claimant{shelf: s, name: name}
				go r.live(ctx)
				err := r.registrar(true).Admit(ctx, leader.Claim{Controller: name, Kind: "ConfigMap"})
				s.mu.Lock()
				defer s.mu.Unlock()
				if err != nil {
					if !errors.Is(err, leader.ErrRival) || len(s.leases) < 2 {
						t.Errorf("seed %d: %s: %v", seed, name, err)
					}
					delete(s.leases, name)
					return
				}
				if len(s.running) > 0 {
					t.Errorf("seed %d: %s runs, and so does %v", seed, name, s.running)
				}
				s.running[name] = true
				s.mu.Unlock()
				within(10 * time.Second)
				if !killed {
					<-t.Context().Done()
				}
				s.mu.Lock()
				delete(s.running, name)
			}
			var wg sync.WaitGroup
			for _, i := range rng.Perm(3) {
				killed := i == 0 && seed%2 == 0
				wg.Go(func() { start(fmt.Sprint("group-", i), killed) })
				if seed%3 == 0 {
					within(5 * time.Second)
				}
			}
			<-time.After(time.Minute)
			s.mu.Lock()
			none := len(s.running) == 0
			s.mu.Unlock()
			if none { // it was killed, or the others stopped because of it
				wg.Go(func() { start("group-9", false) })
				<-time.After(time.Minute)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.running) != 1 {
				t.Errorf("seed %d: %d run", seed, len(s.running))
			}
		})
	}
}

// Only groups that a user would not run next to each other are rivals.
func TestRegistrar_Rivals(t *testing.T) {
	base := leader.Claim{Controller: "web", Kind: "WebApp.example.com"}
	with := func(edit func(*leader.Claim)) leader.Claim {
		c := base
		edit(&c)
		return c
	}
	for name, c := range map[string]struct {
		claim   leader.Claim
		derived bool
		rival   bool
	}{
		"the same controller":              {base, false, true},
		"another controller":               {with(func(c *leader.Claim) { c.Controller = "other" }), false, false},
		"a name that no user chose":        {with(func(c *leader.Claim) { c.Controller = "other" }), true, true},
		"another kind":                     {with(func(c *leader.Claim) { c.Kind = "Job.batch" }), true, false},
		"one of its namespaces":            {with(func(c *leader.Claim) { c.Namespaces = []string{"a", "b"} }), false, true},
		"other namespaces":                 {with(func(c *leader.Claim) { c.Namespaces = []string{"c"} }), true, false},
		"some of its objects":              {with(func(c *leader.Claim) { c.Fields = "metadata.name=a" }), false, true},
		"objects that it does not select":  {with(func(c *leader.Claim) { c.Labels = "tier=db" }), true, false},
		"the same selector, another field": {with(func(c *leader.Claim) { c.Labels, c.Fields = "tier=web", "a=b" }), true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &shelf{within: func(time.Duration) {}, leases: map[string]apiv1.Lease{}}
			first, second := &claimant{shelf: s, name: "first"}, &claimant{shelf: s, name: "second"}
			go first.live(t.Context())
			go second.live(t.Context())
			theirs := with(func(c *leader.Claim) { c.Namespaces, c.Labels = []string{"b"}, "tier=web" })
			if err := first.registrar(true).Admit(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			registrar := second.registrar(c.derived)
			err := registrar.Admit(t.Context(), c.claim)
			if errors.Is(err, leader.ErrRival) != c.rival || err != nil && !strings.Contains(err.Error(), "--leader-elect-resource-name first") {
				t.Errorf("%s: %v", name, err)
			}
			registrar.Release(t.Context(), c.claim.Controller)
			s.mu.Lock()
			defer s.mu.Unlock()
			if strings.Contains(second.claims, c.claim.Kind) {
				t.Errorf("%s: claims after the release: %s", name, second.claims)
			}
		})
	}
}

// A user who may not list Leases, as in an earlier release, is not stopped.
func TestRegistrar_NeedsNoNewRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{within: func(time.Duration) {}, leases: map[string]apiv1.Lease{}, denied: true}
		r := &claimant{shelf: s, name: "first"}
		if err := r.registrar(true).Admit(t.Context(), leader.Claim{Controller: "web", Kind: "ConfigMap"}); err != nil {
			t.Error(err)
		}
	})
}

// slow publishes the claims of its first call after those of its second one, if there is one meanwhile.
type slow struct {
	leader.Publisher

	calls  atomic.Int32
	second chan struct{}
}

func (s *slow) Publish(ctx context.Context, c leader.Claims) error {
	switch s.calls.Add(1) {
	case 1:
		select {
		case <-s.second:
		case <-time.After(100 * time.Millisecond):
		}
	case 2:
		defer close(s.second)
	}
	return s.Publisher.Publish(ctx, c)
}

// Of controllers that start and end at the same time, the published claims are those that run in the end.
func TestRegistrar_PublishesTheLatestClaims(t *testing.T) {
	first := &claimant{shelf: &shelf{within: func(time.Duration) {}, leases: map[string]apiv1.Lease{}}, name: "first"}
	registrar := first.registrar(true)
	s := &slow{Publisher: first, second: make(chan struct{})}
	registrar.Publisher = s
	var wg sync.WaitGroup
	wg.Go(func() { registrar.Release(t.Context(), "old") })
	for s.calls.Load() == 0 {
		runtime.Gosched()
	}
	if err := registrar.Admit(t.Context(), leader.Claim{Controller: "new", Kind: "ConfigMap"}); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !strings.Contains(first.claims, "new") {
		t.Errorf("published %s", first.claims)
	}
}

// A group that was cut off for any time, and another one that starts at any time meanwhile: no two write, and one does in the end.
func TestRegistrar_ARivalOfALapseIsNotJoined(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			var mu sync.Mutex
			within := func(d time.Duration) {
				mu.Lock()
				d = time.Duration(rng.Int64N(int64(d)))
				mu.Unlock()
				<-time.After(d)
			}
			s := &shelf{within: within, leases: map[string]apiv1.Lease{}}
			names := []string{"group-a", "group-b"}
			rng.Shuffle(2, func(i, j int) { names[i], names[j] = names[j], names[i] })
			first, second := &claimant{shelf: s, name: names[0]}, &claimant{shelf: s, name: names[1]}
			gate := leader.NewGate(13500 * time.Millisecond)
			gate.Guarded = true
			life, end := context.WithCancel(t.Context())
			live := func(ctx context.Context) {
				for ctx.Err() == nil {
					gate.Renewed(time.Now())
					s.mu.Lock()
					first.renew()
					s.mu.Unlock()
					select {
					case <-time.After(2 * time.Second):
					case <-ctx.Done():
					}
				}
			}
			go live(life)
			registrar := first.registrar(true)
			if err := registrar.Admit(t.Context(), leader.Claim{Controller: "a", Kind: "ConfigMap"}); err != nil {
				t.Fatal(err)
			}
			end()
			var started, stopped atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				within(40 * time.Second)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				go second.live(ctx)
				if err := second.registrar(true).Admit(ctx, leader.Claim{Controller: "b", Kind: "ConfigMap"}); err != nil {
					stopped.Store(true)
					end()
					s.mu.Lock()
					defer s.mu.Unlock()
					delete(s.leases, second.name)
					return
				}
				started.Store(true)
				<-t.Context().Done()
			})
			wg.Go(func() {
				within(60 * time.Second)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				go live(ctx)
				if err := registrar.Confirm(ctx, gate); err != nil {
					return
				}
				<-t.Context().Done()
			})
			for range 600 {
				if started.Load() && gate.Leads() {
					t.Fatalf("seed %d: both write", seed)
				}
				<-time.After(200 * time.Millisecond)
			}
			if !started.Load() && !gate.Leads() {
				t.Errorf("seed %d: none writes; the second one has stopped: %t; gate: %v", seed, stopped.Load(), gate.Err())
			}
		})
	}
}
