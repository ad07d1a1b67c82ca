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
)

// elector returns what takes part in the election.
func (o *Election) elector(config *rest.Config, log *slog.Logger) (*leader.Elector, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("election: %w", err)
	}
	if o.Name == "" {
		return nil, errors.New("election: the name of the Lease is missing")
	}
	if bad := validation.IsDNS1123Subdomain(o.Name); len(bad) > 0 {
		return nil, fmt.Errorf("--leader-elect: %q is not a valid Lease name: %s; set another one with --leader-elect-resource-name", o.Name, bad[0])
	}
	return leader.New(leader.Config{
		RESTConfig: config, Namespace: o.namespace(), Name: o.Name, Identity: host + "_" + string(uuid.NewUUID()),
		LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod, Logger: log,
	})
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
