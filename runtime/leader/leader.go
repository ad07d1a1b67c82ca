// SPDX-License-Identifier: Apache-2.0

// Package leader elects one of several replicas of a process to write.
//
// The election is client-go's, on a Lease. In addition, this package ensures that writes end before the lease does: they stop when the
// process releases the lease, and when it could not renew the lease in time, whatever else is stuck. A leader that could not renew continues
// once it can, if no other replica has taken the lease. And a standby takes over as soon as the lease ends.
package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Defaults of Config: those of Kubernetes' own components.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// ErrLost is the reason for refusing writes, and the error of Run, after the lease was taken by another replica.
var ErrLost = errors.New("lease lost: another replica may have taken over")

// ErrReleased is the reason for refusing writes after an orderly stop.
var ErrReleased = errors.New("lease released")

// Config configures an election. RESTConfig, Namespace, Name and Identity are required; the other fields have defaults.
type Config struct {
	// RESTConfig is the configuration of the API server's client.
	RESTConfig *rest.Config
	// Namespace and Name are those of the Lease. It is created if it does not exist.
	Namespace, Name string
	// Identity distinguishes this replica from all others, including earlier ones.
	Identity string
	// LeaseDuration is how long the others wait for a silent leader.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it checks who has the lease. It must be less than LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the interval of renewing or requesting the lease.
	RetryPeriod time.Duration
	// ExitOnLapse makes Run end if the lease could not be renewed in time, even if no other replica has taken it.
	ExitOnLapse bool
	// Logger logs changes of the leader. If nil, nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.LeaseDuration = cmp.Or(c.LeaseDuration, DefaultLeaseDuration)
	c.RenewDeadline = cmp.Or(c.RenewDeadline, DefaultRenewDeadline)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, DefaultRetryPeriod)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Elector participates in one election.
type Elector struct {
	cfg  Config
	gate *Gate
	*Notes
	elector *leaderelection.LeaderElector
	leader  atomic.Pointer[string] // its identity, as last seen
}

// New returns an Elector. It sends nothing; Run does.
func New(cfg Config) (*Elector, error) {
	cfg = cfg.withDefaults()
	if cfg.RESTConfig == nil || cfg.Namespace == "" || cfg.Name == "" || cfg.Identity == "" {
		return nil, errors.New("leader: RESTConfig, Namespace, Name and Identity are required")
	}
	rc := rest.CopyConfig(cfg.RESTConfig)
	rc.Timeout = cfg.RenewDeadline / 2 // a request that hangs leaves time for another one
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("leader[%s/%s]: %w", cfg.Namespace, cfg.Name, err)
	}
	return newElector(cfg, client.CoordinationV1().Leases(cfg.Namespace), &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.Name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
	})
}

// newElector returns an Elector on a lock.
func newElector(cfg Config, leases coordinationv1.LeaseInterface, on resourcelock.Interface) (*Elector, error) {
	e := &Elector{cfg: cfg, gate: NewGate(cfg.LeaseDuration * 9 / 10)}
	e.gate.Exit = cfg.ExitOnLapse
	e.Notes = &Notes{Leases: leases, Namespace: cfg.Namespace, Name: cfg.Name, Gate: e.gate}
	var err error
	e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          cfg.Name,
		LeaseDuration: cfg.LeaseDuration, RenewDeadline: cfg.RenewDeadline, RetryPeriod: cfg.RetryPeriod / 2, // see lock.Update
		// The lease is released in the order of Run: see lock.Update.
		ReleaseOnCancel: true,
		Lock: &lock{
			Interface: on, gate: e.gate, standby: standby{period: cfg.RetryPeriod, lease: cfg.LeaseDuration},
			leads: e.leads, log: cfg.Logger, failed: map[string]string{},
		},
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, // the gate opens when the lease is written
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("leader[%s/%s]: %w", cfg.Namespace, cfg.Name, err)
	}
	return e, nil
}

// leads records the holder of the lease.
func (e *Elector) leads(identity string) {
	if before := e.leader.Swap(&identity); before != nil && *before == identity {
		return
	}
	if identity == e.cfg.Identity {
		e.cfg.Logger.Info("became leader", "lease", e.cfg.Namespace+"/"+e.cfg.Name, "identity", identity)
		return
	}
	e.cfg.Logger.Info("another replica leads; standby", "lease", e.cfg.Namespace+"/"+e.cfg.Name, "leader", identity)
}

// Leader returns the identity of the leader as seen by this replica; empty if it has not seen one.
func (e *Elector) Leader() string {
	if seen := e.leader.Load(); seen != nil {
		return *seen
	}
	return ""
}

// Gate returns the gate that is open while this replica may write.
func (e *Elector) Gate() *Gate { return e.gate }

// Publish implements Publisher.
func (e *Elector) Publish(ctx context.Context, claims Claims) error {
	claims.By = e.cfg.Identity
	return e.SetNote(ctx, ClaimsAnnotation, claims.Text())
}

// Run participates in the election until ctx ends, and then releases the lease if this replica holds it: everything that writes must have
// ended before. The error is the reason for which the gate was closed before ctx ended. It can be called once.
func (e *Elector) Run(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(e.gate.final, cancel)()
	defer context.AfterFunc(ctx, func() { e.gate.Close(ErrReleased) })()
	for running.Err() == nil && e.gate.final.Err() == nil {
		e.elector.Run(running) // it returns when it could not renew the lease until the deadline, and then continues if it still holds it
		if e.cfg.ExitOnLapse {
			e.gate.Close(ErrLost)
		}
	}
	if errors.Is(e.gate.Err(), ErrReleased) {
		return nil
	}
	return fmt.Errorf("leader[%s/%s]: %w", e.cfg.Namespace, e.cfg.Name, e.gate.Err())
}
