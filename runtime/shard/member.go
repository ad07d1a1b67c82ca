// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Config configures a Member. RESTConfig, Namespace, Group and ID are required; the other fields have defaults.
type Config struct {
	// RESTConfig is the configuration of the API server's client.
	RESTConfig *rest.Config
	// Namespace is the namespace of the Leases. Group identifies the replicas that share the objects, and ID identifies this one: it is the
	// name of its Lease. If it takes part again after it has lost its Lease, a suffix is added.
	Namespace, Group, ID string
	// Slots is the number of parts that the objects are split into, at most slots.Max.
	Slots int
	// Timing has the defaults of a leader election.
	Timing Timing
	// ExitOnLapse makes Run end if the lease could not be renewed in time. Otherwise, the replica waits until it can renew it, and takes
	// part again.
	ExitOnLapse bool
	// Summary, if not nil, returns the summary of the controllers. It must not block.
	Summary func() Summary
	// News, if not nil, is called when slots are run by no replica, or by several, when that is over, and when the record was written anew.
	// Only one replica calls it. It must not block.
	News func(News)
	// Logger logs moves of slots. If nil, nothing is logged.
	Logger *slog.Logger
}

// News is a message about the slots. It has the form of a Kubernetes event.
type News struct {
	Warning      bool
	Reason, Note string
}

func (c Config) withDefaults() Config {
	c.Timing.Lease = cmp.Or(c.Timing.Lease, leader.DefaultLeaseDuration)
	c.Timing.Renew = cmp.Or(c.Timing.Renew, leader.DefaultRetryPeriod)
	c.Timing.Settle = cmp.Or(c.Timing.Settle, 2*c.Timing.Renew)
	if c.Summary == nil {
		c.Summary = func() Summary { return Summary{} }
	}
	if c.News == nil {
		c.News = func(News) {}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Member is one replica. It is safe for concurrent use.
type Member struct {
	cfg    Config
	gate   *leader.Gate
	client clientv1.LeaseInterface

	commands chan func(*Core)
	waits    map[string][]chan<- string // belongs to the loop; waiting calls of Split, by controller
	view     atomic.Pointer[View]
	served   atomic.Pointer[bool] // see Served
	claims   atomic.Pointer[string]
	started  atomic.Bool

	mu    sync.Mutex
	parts []*part // guarded by mu
	want  []phase // guarded by mu; by slot: the phase that the parts should reach
}

// View is what a replica knows about itself and the others.
type View struct {
	ID     string
	Record *Record // nil if there is none
	// Leases are the leases of all replicas, ordered by ID.
	Leases []Lease
	// Own is the state that the replica publishes. If Lapsed, its lease is not valid, and it runs none of its slots.
	Own    State
	Lapsed bool
	// Slots is the number of slots.
	Slots int
	// Moves counts the slots that the replica has received or given away, and Ended the leases of silent replicas that it has ended.
	Moves, Ended uint64
	// Patience is how long a replica that lives may not be heard of.
	Patience time.Duration
	// Wrong describes the slots that no replica runs for longer than a handover takes, or that several run. It is empty if there are none.
	Wrong string
}

// New returns a Member. It sends nothing; Run does.
func New(cfg Config) (*Member, error) {
	cfg = cfg.withDefaults()
	if cfg.RESTConfig == nil || cfg.Namespace == "" || cfg.Group == "" || cfg.ID == "" {
		return nil, errors.New("shards: RESTConfig, Namespace, Group and ID are required")
	}
	if cfg.Slots < 1 || cfg.Slots > slots.Max {
		return nil, fmt.Errorf("shards: %d slots, want 1 to %d", cfg.Slots, slots.Max)
	}
	if t := cfg.Timing; t.Lease%time.Second != 0 || t.Lease < 3*t.Renew {
		return nil, fmt.Errorf("shards: a lease of %v, want whole seconds, and at least three times the retry period of %v", t.Lease, t.Renew)
	}
	client, err := kubernetes.NewForConfig(cfg.RESTConfig)
	if err != nil {
		return nil, fmt.Errorf("shards[%s/%s]: %w", cfg.Namespace, cfg.Group, err)
	}
	m := &Member{
		cfg: cfg, gate: leader.NewGate(cfg.Timing.validity()), client: client.CoordinationV1().Leases(cfg.Namespace),
		commands: make(chan func(*Core)), waits: map[string][]chan<- string{}, want: make([]phase, slots.Max),
	}
	m.gate.Exit = cfg.ExitOnLapse
	m.view.Store(&View{ID: cfg.ID, Slots: cfg.Slots})
	return m, nil
}

// Gate returns the gate that is open while this replica may write.
func (m *Member) Gate() *leader.Gate { return m.gate }

// Notes returns the notes about modules that the replicas share.
func (m *Member) Notes() *leader.Notes {
	return &leader.Notes{Leases: m.client, Namespace: m.cfg.Namespace, Name: m.cfg.Group + "-notes", Gate: m.gate, Separate: true}
}

// Publish implements leader.Publisher. The claims are written with the next renewal.
func (m *Member) Publish(_ context.Context, claims leader.Claims) error {
	text := claims.Text()
	m.claims.Store(&text)
	return nil
}

// View returns the current view.
func (m *Member) View() *View { return m.view.Load() }

// Slots returns the current number of slots.
func (m *Member) Slots() int { return m.View().Slots }

// Ready allows the replica to be given slots, once Run has been called.
func (m *Member) Ready(ctx context.Context) { m.command(ctx, (*Core).Ready) }

// Leave makes the replica give its slots away, after which Run returns. With hurry, it does not wait until others are warm.
func (m *Member) Leave(ctx context.Context, hurry bool) {
	m.command(ctx, func(c *Core) { c.Leave(time.Now(), hurry) })
}

// Split returns the field that determines the slot of a controller's objects, which is the same in all replicas: the first proposal wins.
// The error is that of ctx.
func (m *Member) Split(ctx context.Context, controller, propose string) (by string, err error) {
	answer := make(chan string, 1)
	m.command(ctx, func(c *Core) {
		c.Split(controller, propose)
		m.waits[controller] = append(m.waits[controller], answer)
	})
	select {
	case by = <-answer:
		return by, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Served reports whether the API server can select objects by slot. It retries until there is an answer; the error is that of ctx.
func (m *Member) Served(ctx context.Context) (bool, error) {
	for {
		if known := m.served.Load(); known != nil {
			return *known, nil
		}
		all := slots.Range{Field: slots.UID, N: 1}
		list, err := m.client.List(ctx, metav1.ListOptions{Limit: 1, ShardSelector: all.Selector()})
		if err == nil {
			served := list.ShardInfo != nil
			if m.served.CompareAndSwap(nil, &served) {
				m.cfg.Logger.Info("shards: asked the API server whether it selects objects by shards", "selects", served)
			}
			continue
		}
		select {
		case <-time.After(m.cfg.Timing.Renew / 2):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (m *Member) command(ctx context.Context, do func(*Core)) {
	select {
	case m.commands <- do:
	case <-ctx.Done():
	}
}

// Run participates until Leave has given all slots away, or ctx ends. When ctx ends, everything that writes must have ended already, and
// the remaining slots are given away at once. The error is leader.ErrLost if the lease was lost and the replica could not take part again.
// Run can be called once.
func (m *Member) Run(ctx context.Context) error {
	if m.started.Swap(true) {
		return errors.New("shards: Run was called before")
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &loop{Member: m, running: running, results: make(chan func(*Core)), all: newWatched(), lists: make(chan struct{}, maxLists)}
	l.ctx, l.cancel = context.WithCancel(running)
	l.others.Go(func() { l.all.run(running, m.client, m.cfg) })
	err := l.run(ctx)
	m.gate.Close(cmp.Or(err, leader.ErrReleased))
	stop()
	l.wg.Wait()
	l.others.Wait()
	return err
}
