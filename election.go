package wasmctl

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/shard"
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

// member returns what takes part in sharing the objects.
func (o *Election) member(config *rest.Config, log *slog.Logger) (*shard.Member, error) {
	host, err := o.check()
	if err != nil {
		return nil, err
	}
	return shard.New(shard.Config{
		RESTConfig: config, Namespace: o.namespace(), Group: o.Name, ID: leaseName(host) + "-" + string(uuid.NewUUID())[:8], Slots: o.Shards,
		Timing: shard.Timing{Lease: o.LeaseDuration, Renew: o.RetryPeriod}, Logger: log,
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
		return corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: o.namespace(), Name: o.Name}
	}
	if ns := podNamespace(); ns != "" {
		if name, err := os.Hostname(); err == nil { // a pod's is its name
			return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: name}
		}
	}
	ns := plan.EventNamespace(watched)
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: ns, Name: ns}
}
