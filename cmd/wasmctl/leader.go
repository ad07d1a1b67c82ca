package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/leader"
)

// inClusterNamespace is where a pod finds the name of its namespace.
const inClusterNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// leaderOptions are the flags of the election: those of Kubernetes' own
// components.
type leaderOptions struct {
	elect           bool
	namespace, name string
	lease           time.Duration
	renew           time.Duration
	retry           time.Duration
}

func (o *leaderOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.elect, "leader-elect", false, "stand by until this replica has been elected to reconcile")
	f.StringVar(&o.namespace, "leader-elect-resource-namespace", "", "namespace of the Lease (default: the pod's, else default)")
	f.StringVar(&o.name, "leader-elect-resource-name", "", "name of the Lease (default: wasmctl- and the controller's name)")
	f.DurationVar(&o.lease, "leader-elect-lease-duration", leader.DefaultLeaseDuration, "how long the others wait for a leader that is silent")
	f.DurationVar(&o.renew, "leader-elect-renew-deadline", leader.DefaultRenewDeadline, "how long the leader tries to renew before it gives up")
	f.DurationVar(&o.retry, "leader-elect-retry-period", leader.DefaultRetryPeriod, "how often the lease is renewed or asked for")
}

// validate checks what client-go would refuse later.
func (o *leaderOptions) validate() error {
	switch {
	case o.retry <= 0:
		return errors.New("--leader-elect-retry-period must be positive")
	case o.renew <= o.retry*6/5:
		return fmt.Errorf("--leader-elect-renew-deadline %v: must be more than 1.2 times the retry period of %v", o.renew, o.retry)
	case o.lease <= o.renew:
		return fmt.Errorf("--leader-elect-lease-duration %v: must be more than the renew deadline of %v", o.lease, o.renew)
	case o.lease < time.Second:
		return fmt.Errorf("--leader-elect-lease-duration %v: must be at least 1s", o.lease)
	}
	return nil
}

// elector returns what takes part in the election; nil without --leader-elect.
// controller is the name of the first controller.
func (o *leaderOptions) elector(rc *rest.Config, controller string, log *slog.Logger) (*leader.Elector, error) {
	if !o.elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("--leader-elect: %w", err)
	}
	name := o.leaseName(controller)
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		return nil, fmt.Errorf("--leader-elect: no Lease can have the name %q: %s; give it another one with --leader-elect-resource-name", name, bad[0])
	}
	return leader.New(leader.Config{
		RESTConfig: rc, Namespace: o.leaseNamespace(), Name: name, Identity: host + "_" + string(uuid.NewUUID()),
		LeaseDuration: o.lease, RenewDeadline: o.renew, RetryPeriod: o.retry, Logger: log,
	})
}

// leaseName returns the name of the Lease; controller is the first controller's.
func (o *leaderOptions) leaseName(controller string) string {
	if o.name != "" {
		return o.name
	}
	return "wasmctl-" + controller
}

func (o *leaderOptions) leaseNamespace() string {
	if o.namespace != "" {
		return o.namespace
	}
	if b, err := os.ReadFile(inClusterNamespace); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b))
	}
	return "default"
}
