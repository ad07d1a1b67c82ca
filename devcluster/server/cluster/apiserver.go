// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const (
	// listenLimit is how long Run tries to open a requested port.
	listenLimit = 3 * time.Second
	// connectionsLimit is how long the API server waits for its clients' connections when it stops, so that a hanging client does not delay
	// it further.
	connectionsLimit = 3 * time.Second
	// apiServerStopLimit is the time limit for the API server to stop completely.
	apiServerStopLimit = 30 * time.Second
)

func init() {
	// A second server in one process would set the global log options again.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	restclient.SetDefaultWarningHandler(restclient.NoWarnings{})
}

// apiServer is a running kube-apiserver with its extension and aggregation layers.
type apiServer struct {
	url    string
	cancel context.CancelFunc
	done   chan struct{} // closed when the server has ended
	err    error         // the exit error; set before done is closed
}

// startAPIServer starts kube-apiserver and returns before it is ready. The server ends only by stop, not by ctx, because the controllers
// must end before it.
func startAPIServer(ctx context.Context, cfg Config, etcdURL string, keys *pki) (_ *apiServer, err error) {
	ln, err := listen(ctx, cfg.Port)
	if err != nil {
		return nil, err
	}
	opts, err := apiServerOptions(ln, append(apiServerFlags(etcdURL, keys), cfg.APIServerFlags...))
	if err != nil {
		ln.Close()
		return nil, err
	}
	run, err := prepareAPIServer(ctx, opts)
	if err != nil {
		ln.Close()
		return nil, err
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &apiServer{url: "https://" + ln.Addr().String(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.err = run(runCtx)
	}()
	return a, nil
}

// listen opens the port on 127.0.0.1. A requested port may still be in use for a moment by the process that is being replaced, so it
// retries.
func listen(ctx context.Context, port int) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			return ln, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("port[%d]: %w", port, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("port[%d]: %w: choose another --port, or 0 for a free one", port, err)
		}
	}
}

// apiServerFlags returns the flags that all our control planes have.
func apiServerFlags(etcdURL string, keys *pki) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--etcd-prefix=/registry",
		"--tls-cert-file=" + keys.file(servingCert),
		"--tls-private-key-file=" + keys.file(servingKey),
		"--cert-dir=" + keys.dir,
		"--client-ca-file=" + keys.file(caCert),
		"--requestheader-client-ca-file=" + keys.file(proxyCACert),
		"--requestheader-allowed-names=" + proxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + keys.file(proxyCert),
		"--proxy-client-key-file=" + keys.file(proxyKey),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + keys.file(saPub),
		"--service-account-signing-key-file=" + keys.file(saKey),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--allow-privileged=true", // as the distributions of Kubernetes
		"--anonymous-auth=false",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
		// Without this flag, a stop does not end open watches but waits a minute for them.
		"--shutdown-watch-termination-grace-period=1s",
	}
}

// apiServerOptions parses the flags. Each server gets its own component registry, because the process-wide one can be set only once.
func apiServerOptions(ln net.Listener, flags []string) (*options.ServerRunOptions, error) {
	// Most of the server uses the process-wide feature gate, which is set here and not by the registry.
	for _, f := range flags {
		if gates, ok := strings.CutPrefix(f, "--feature-gates="); ok {
			if err := utilfeature.DefaultMutableFeatureGate.Set(gates); err != nil {
				return nil, fmt.Errorf("kube-apiserver: feature gates: %w", err)
			}
		}
	}
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, compatibility.DefaultBuildEffectiveVersion(), gate); err != nil {
		return nil, fmt.Errorf("kube-apiserver: register component: %w", err)
	}
	opts := options.NewServerRunOptions()
	opts.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	opts.SecureServing.Listener = ln
	opts.SecureServing.BindPort = ln.Addr().(*net.TCPAddr).Port
	opts.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)

	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range opts.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(flags); err != nil {
		return nil, fmt.Errorf("kube-apiserver: flags: %w: see --apiserver-flag", err)
	}
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver: feature gates: %w", err)
	}
	return opts, nil
}

// prepareAPIServer builds the chain of servers and returns a function that runs it.
func prepareAPIServer(ctx context.Context, opts *options.ServerRunOptions) (func(context.Context) error, error) {
	completed, err := opts.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: complete options: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, fmt.Errorf("kube-apiserver: options: %w", utilerrors.NewAggregate(errs))
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: configure: %w", err)
	}
	complete, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: configure: %w", err)
	}
	chain, err := app.CreateServerChain(complete)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: create: %w", err)
	}
	chain.GenericAPIServer.ShutdownTimeout = connectionsLimit
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: prepare: %w", err)
	}
	return prepared.Run, nil
}

// stop ends the server and waits for it. It may be called if the server has ended by itself.
func (a *apiServer) stop() error {
	select {
	case <-a.done:
		return nil // it ended by itself, which has been reported
	default:
	}
	a.cancel()
	limit := time.NewTimer(apiServerStopLimit)
	defer limit.Stop()
	select {
	case <-a.done:
	case <-limit.C:
		return fmt.Errorf("kube-apiserver: did not stop in %s", apiServerStopLimit)
	}
	if a.err != nil && !errors.Is(a.err, context.Canceled) {
		return fmt.Errorf("kube-apiserver: stop: %w", a.err)
	}
	return nil
}
