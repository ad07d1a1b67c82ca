// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// elector returns the Elector of this replica.
func (o *Election) elector(config *rest.Config, log *slog.Logger) (*leader.Elector, error) {
	host, err := o.check()
	if err != nil {
		return nil, err
	}
	return leader.New(leader.Config{
		RESTConfig: config, Namespace: o.namespace(), Name: o.Name, Identity: host + "_" + string(uuid.NewUUID()),
		LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod, ExitOnLapse: o.ExitOnLapse, Logger: log,
	})
}

// replicate prepares the election of one replica, or the sharing of objects between replicas, if the
// options have one.
func (rt *Runtime) replicate(config *rest.Config) (err error) {
	switch o := rt.opts.Election; {
	case o == nil:
	case o.Shards > 0:
		if rt.member, err = rt.newMember(config); err == nil {
			notes := rt.member.Notes()
			rt.shared.Gate, rt.shared.Notes, rt.shared.Member, rt.shared.Registrar = rt.member.Gate(), notes, rt.member, o.registrar(notes, rt.member, rt.log)
		}
	default:
		if rt.elector, err = o.elector(config, rt.log); err == nil {
			rt.shared.Gate, rt.shared.Notes, rt.shared.Registrar = rt.elector.Gate(), rt.elector, o.registrar(rt.elector.Notes, rt.elector, rt.log)
		}
	}
	if gate := rt.shared.Gate; gate != nil {
		gate.Guarded = true // see afterLapses
	}
	return err
}

// registrar returns the Registrar of this replica.
func (o *Election) registrar(notes *leader.Notes, by leader.Publisher, log *slog.Logger) *leader.Registrar {
	return &leader.Registrar{
		Leases: notes.Leases, Publisher: by, Group: o.Name, Derived: o.NameOfModule, Logger: log,
		Period: cmp.Or(o.RetryPeriod, leader.DefaultRetryPeriod), Lease: cmp.Or(o.LeaseDuration, leader.DefaultLeaseDuration),
	}
}

// newMember returns the member that shares the objects with other replicas.
func (rt *Runtime) newMember(config *rest.Config) (*shard.Member, error) {
	o := rt.opts.Election
	host, err := o.check()
	if err != nil {
		return nil, err
	}
	return shard.New(shard.Config{
		RESTConfig: config, Namespace: o.namespace(), Group: o.Name, ID: leaseName(host) + "-" + string(uuid.NewUUID())[:8], Slots: o.Shards,
		Timing: shard.Timing{Lease: o.LeaseDuration, Renew: o.RetryPeriod}, ExitOnLapse: o.ExitOnLapse, Summary: rt.summary, News: rt.news, Logger: rt.log,
	})
}

// leaseName derives the name of a Lease from that of a host.
func leaseName(host string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(host)), "-")
	return cmp.Or(name[:min(len(name), 200)], "replica")
}

// check validates the name of the Lease, and returns the name of this host.
func (o *Election) check() (host string, err error) {
	if host, err = os.Hostname(); err != nil {
		return "", fmt.Errorf("election: %w", err)
	}
	if o.Name == "" {
		return "", errors.New("election: the name of the Lease is missing")
	}
	if bad := validation.IsDNS1123Subdomain(o.Name); len(bad) > 0 {
		return "", fmt.Errorf("%s: %q is not a valid Lease name: %s; set another one with --leader-elect-resource-name", o.flag(), o.Name, bad[0])
	}
	if bad := validation.IsValidLabelValue(o.Name); o.Shards > 0 && len(bad) > 0 {
		return "", fmt.Errorf("--shards: %q is not a valid label: %s; set another name with --leader-elect-resource-name", o.Name, bad[0])
	}
	return host, nil
}

// flag returns the flag of the command that enables this kind of election.
func (o *Election) flag() string {
	if o.Shards > 0 {
		return "--shards"
	}
	return "--leader-elect"
}

func (o *Election) namespace() string {
	return cmp.Or(o.Namespace, podNamespace(), corev1.NamespaceDefault)
}

// podNamespace returns the namespace of this process's pod; empty outside of a cluster.
func podNamespace() string {
	b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// lease is the participation of a Run in an election.
type lease struct {
	lost    <-chan struct{} // nil without an election
	release func() error    // returns when the lease has been given up
	// handOver hands the objects of this replica over to others while its controllers go
	// on. It returns early if force is closed.
	handOver func(force <-chan struct{})
}

// elect joins the election, if there is one. The lease is held while the controllers of ctx
// stop, until release is called.
func (rt *Runtime) elect(ctx context.Context) lease {
	handOver := func(<-chan struct{}) {}
	if rt.opts.Election == nil {
		return lease{release: func() error { return nil }, handOver: handOver}
	}
	run := rt.share
	if rt.elector != nil {
		run = rt.elector.Run
	}
	running, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	result, ended := make(chan error, 1), make(chan struct{})
	go func() {
		result <- run(running)
		close(ended)
	}()
	var retries sync.WaitGroup
	retries.Go(func() { rt.afterLapses(running) })
	if rt.member != nil {
		handOver = func(force <-chan struct{}) {
			within, cancel := context.WithTimeout(running, handOverWithin)
			defer cancel()
			rt.member.Leave(within, false)
			select {
			case <-ended:
			case <-force:
			case <-within.Done():
			}
		}
	}
	return lease{lost: rt.shared.Gate.Done(), handOver: handOver, release: func() error {
		giveUp()
		err := <-result
		retries.Wait()
		if closed := rt.shared.Gate.Err(); err == nil && errors.Is(closed, leader.ErrRival) {
			err = closed
		}
		if errors.Is(err, leader.ErrLost) || errors.Is(err, leader.ErrRival) {
			return failure.Lost.Wrap(err)
		}
		return err
	}}
}

// afterLapses opens the gate again when the lease is renewed after a lapse, unless another group
// of replicas has started meanwhile. It makes all watches retry then: the API server answers.
func (rt *Runtime) afterLapses(ctx context.Context) {
	for rt.shared.Registrar.Confirm(ctx, rt.shared.Gate) == nil {
		rt.users.Retry()
		period := rt.shared.Gate.Period()
		select {
		case <-period.Done():
			if !errors.Is(context.Cause(period), leader.ErrLapsed) {
				return
			}
			rt.log.Warn("the lease is not valid; runs wait until it is renewed", "next", "check that the API server answers")
		case <-ctx.Done():
			return
		}
	}
}

const (
	// joinWithin is how long a replica waits for its controllers before it takes objects.
	joinWithin = 30 * time.Second
	// handOverWithin is how long a replica that stops waits for others to take its objects
	// over. Then its controllers stop in any case.
	handOverWithin = 15 * time.Second
)

// share joins the sharing of objects once all controllers have been tried.
func (rt *Runtime) share(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	waiting, cancel := context.WithTimeout(ctx, joinWithin)
	defer cancel()
	wg.Go(func() {
		for _, c := range rt.Controllers() {
			_ = c.Started(waiting) // a controller that failed is retried
		}
		rt.member.Ready(ctx)
	})
	return rt.member.Run(ctx)
}

// Uncovered describes the slots that no replica or several replicas run; it is empty if
// there are none. shared is false unless replicas share objects.
func (rt *Runtime) Uncovered() (wrong string, shared bool) {
	if rt.member == nil {
		return "", false
	}
	return rt.member.View().Wrong, true
}

// Owns reports whether this replica runs the object with this uid. Unless replicas share
// objects, it runs every object.
func (rt *Runtime) Owns(uid string) bool {
	if rt.member == nil {
		return true
	}
	v := rt.member.View()
	return v.Own.Open.Has(slots.Of(uid, v.Slots))
}
