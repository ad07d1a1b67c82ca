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

	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// elector returns what takes part in the election.
func (o *Election) elector(config *rest.Config, log *slog.Logger) (*leader.Elector, error) {
	host, err := o.check()
	if err != nil {
		return nil, err
	}
	return leader.New(leader.Config{
		RESTConfig: config, Namespace: o.namespace(), Name: o.Name, Identity: host + "_" + string(uuid.NewUUID()),
		LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod, Logger: log,
	})
}

// newMember returns what takes part in sharing the objects.
func (rt *Runtime) newMember(config *rest.Config) (*shard.Member, error) {
	o := rt.opts.Election
	host, err := o.check()
	if err != nil {
		return nil, err
	}
	return shard.New(shard.Config{
		RESTConfig: config, Namespace: o.namespace(), Group: o.Name, ID: leaseName(host) + "-" + string(uuid.NewUUID())[:8], Slots: o.Shards,
		Timing: shard.Timing{Lease: o.LeaseDuration, Renew: o.RetryPeriod}, Summary: rt.summary, Alarm: rt.alarm, Logger: rt.log,
	})
}

// leaseName makes the name of a Lease of that of a host.
func leaseName(host string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(host)), "-")
	return cmp.Or(name[:min(len(name), 200)], "replica")
}

// check checks the name of the Lease, and returns that of this host.
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

// flag is the one of the command that asks for it.
func (o *Election) flag() string {
	if o.Shards > 0 {
		return "--shards"
	}
	return "--leader-elect"
}

func (o *Election) namespace() string {
	return cmp.Or(o.Namespace, podNamespace(), corev1.NamespaceDefault)
}

// podNamespace is the namespace of the pod that this process runs in; empty
// outside of a cluster.
func podNamespace() string {
	b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// eventsAbout is what events about a controller as a whole are about, where a
// user of kubectl would look: the Lease of the election, else the pod, else,
// outside of a cluster, the first namespace that is watched.
func (rt *Runtime) eventsAbout(watched []string) corev1.ObjectReference {
	if o := rt.opts.Election; o != nil {
		lease := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: o.namespace(), Name: o.Name}
		if o.Shards > 0 { // there are several
			lease.Name = shard.RecordName(o.Name)
		}
		return lease
	}
	if ns := podNamespace(); ns != "" {
		if name, err := os.Hostname(); err == nil { // a pod's is its name
			return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: name}
		}
	}
	ns := plan.EventNamespace(watched)
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: ns, Name: ns}
}

// lease is the part that a Run takes in an election.
type lease struct {
	lost    <-chan struct{} // nil without an election
	release func() error    // returns when the lease has been given up
	// handOver gives what this replica runs to others, until force is closed, while
	// its controllers go on.
	handOver func(force <-chan struct{})
}

// elect starts to take part in the election, if there is one. The lease is kept
// while ctx's controllers stop, until release.
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
		if errors.Is(err, leader.ErrLost) {
			return failure.Lost.Wrap(err)
		}
		return err
	}}
}

const (
	// joinWithin is how long a replica waits for its controllers before it takes
	// objects.
	joinWithin = 30 * time.Second
	// handOverWithin is how long a replica that stops waits for others to take its
	// objects over. Then its controllers stop all the same.
	handOverWithin = 15 * time.Second
)

// share takes part in sharing the objects, as soon as all controllers have been tried.
func (rt *Runtime) share(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	waiting, cancel := context.WithTimeout(ctx, joinWithin)
	defer cancel()
	wg.Go(func() {
		for _, c := range rt.Controllers() {
			_ = c.Started(waiting) // it is retried otherwise
		}
		rt.member.Ready(ctx)
	})
	return rt.member.Run(ctx)
}

// alarm records an event about the slots that nobody runs, or several replicas; none: that
// is over. Any controller can record it.
func (rt *Runtime) alarm(wrong string) {
	e := events.Event{Type: corev1.EventTypeWarning, Reason: "SlotsNotCovered", Action: "Share", Note: wrong + "; wasmctl status --all-replicas shows who runs what"}
	if wrong == "" {
		e.Type, e.Reason, e.Note = corev1.EventTypeNormal, "SlotsCovered", "each slot is run by one replica, or is on its way to one"
	}
	for _, c := range rt.Controllers() {
		if engine := c.life.View().Engine; engine != nil {
			engine.Record(e)
			return
		}
	}
}

// Uncovered says which slots nobody runs, or several replicas, where replicas share
// objects; "" is none. Shared is false where they do not.
func (rt *Runtime) Uncovered() (wrong string, shared bool) {
	if rt.member == nil {
		return "", false
	}
	return rt.member.View().Wrong, true
}

// Owns reports whether an object is this replica's by its uid, where replicas share
// objects; else each object is.
func (rt *Runtime) Owns(uid string) bool {
	if rt.member == nil {
		return true
	}
	v := rt.member.View()
	return v.Own.Open.Has(slots.Of(uid, v.Slots))
}
