// SPDX-License-Identifier: Apache-2.0

// Package manager has the manager of a module's controllers. It declares them to
// the host, which watches, queues and runs them.
package manager

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// Manager has the parts that the controllers of a module share.
type Manager interface {
	cluster.Cluster
	// Add adds a controller or another Runnable. The host calls Runnables as a
	// controller of their own, named "runnables".
	Add(r Runnable) error
	// Elected returns a channel that is closed by the first run of the instance,
	// because the host elects the leader.
	Elected() <-chan struct{}
	// AddMetricsServerExtraHandler has no effect, because a module has no
	// metrics server.
	AddMetricsServerExtraHandler(path string, handler http.Handler) error
	// AddHealthzCheck has no effect, because the host answers probes.
	AddHealthzCheck(name string, check healthz.Checker) error
	// AddReadyzCheck has no effect, because the host answers probes.
	AddReadyzCheck(name string, check healthz.Checker) error
	// Start declares the controllers to the host, and waits until ctx is done.
	Start(ctx context.Context) error
	// GetWebhookServer returns the server that collects the webhooks.
	GetWebhookServer() webhook.Server
	// GetLogger returns the logger of the options.
	GetLogger() logr.Logger
	// GetConverterRegistry returns the converters of the conversion webhook.
	GetConverterRegistry() conversion.Registry
	// GetControllerOptions returns the options that controllers share.
	GetControllerOptions() config.Controller
}

// Options are the options of a manager. In a module, the options of leader
// election, of servers and of the connection have no effect, because the host
// has its own.
type Options struct {
	// Scheme maps kinds to Go types.
	Scheme *runtime.Scheme
	// MapperProvider makes the mapper, if it is set.
	MapperProvider func(c *rest.Config, httpClient *http.Client) (meta.RESTMapper, error)
	// Cache restricts the watches.
	Cache cache.Options
	// NewCache calls cache.New, which returns the host's cache with the given
	// restrictions.
	NewCache cache.NewCacheFunc
	// Client selects the reads that go to the cache.
	Client client.Options
	// NewClient makes the client, if it is set.
	NewClient client.NewClientFunc
	// Logger is the logger of the manager; log.Log if it is not set.
	Logger logr.Logger

	LeaderElection                      bool
	LeaderElectionResourceLock          string
	LeaderElectionNamespace             string
	LeaderElectionID                    string
	LeaderElectionConfig                *rest.Config
	LeaderElectionReleaseOnCancel       bool
	LeaderElectionLabels                map[string]string
	LeaderElectionResourceLockInterface any
	LeaseDuration                       *time.Duration
	RenewDeadline                       *time.Duration
	RetryPeriod                         *time.Duration

	Metrics                metricsserver.Options
	HealthProbeBindAddress string
	ReadinessEndpointName  string
	LivenessEndpointName   string
	PprofBindAddress       string
	WebhookServer          webhook.Server

	// BaseContext returns the parent of the contexts of runs.
	BaseContext             BaseContextFunc
	EventBroadcaster        any
	GracefulShutdownTimeout *time.Duration
	// Controller are the options that controllers share.
	Controller config.Controller

	// The fields below are those of version 0.15; modernize copies them to
	// their successors.
	Namespace             string
	SyncPeriod            *time.Duration
	ClientDisableCacheFor []client.Object
	DryRunClient          bool
	MetricsBindAddress    string
	Host                  string
	Port                  int
	CertDir               string
	TLSOpts               []func(*tls.Config)
}

// BaseContextFunc returns a context.
type BaseContextFunc func() context.Context

// Runnable is something that a manager starts.
type Runnable interface {
	// Start runs until ctx is done.
	Start(ctx context.Context) error
}

// RunnableFunc is a function that is a Runnable.
type RunnableFunc func(context.Context) error

// Start implements Runnable.
func (f RunnableFunc) Start(ctx context.Context) error { return f(ctx) }

// LeaderElectionRunnable is a Runnable that reports whether it needs leader
// election.
type LeaderElectionRunnable interface {
	// NeedLeaderElection reports whether only the leader runs it.
	NeedLeaderElection() bool
}
