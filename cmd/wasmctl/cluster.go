package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wasmctl/wasmctl/devcluster"
)

// errNoCluster says how to name a cluster.
var errNoCluster = errors.New(`no cluster is configured: name a kubeconfig with --kubeconfig or $KUBECONFIG (~/.kube/config is read too), ` +
	`run inside a cluster, or try a local control plane with --dev`)

// errDevEnded says that the control plane of --dev ended before we did. Nobody
// starts it again, so waiting for it would be in vain.
var errDevEnded = errors.New("the local control plane has ended by itself; the next run with --dev goes on with its data")

// loadConfig finds the cluster as kubectl does, and the pod's service account
// where there is no kubeconfig.
func loadConfig(kubeconfig, kubecontext string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	rules.WarnIfAllMissing = false
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubecontext})
	rc, err := config.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errNoCluster
	case err != nil && kubecontext != "" && !hasContext(config, kubecontext):
		return nil, fmt.Errorf("--context %q: the kubeconfig does not have it; kubectl config get-contexts lists those it has", kubecontext)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return rc, nil
}

// hasContext says whether a kubeconfig that can be read has a context; of one
// that cannot, another error speaks.
func hasContext(config clientcmd.ClientConfig, name string) bool {
	raw, err := config.RawConfig()
	return err != nil || raw.Contexts[name] != nil
}

// startDev starts the local control plane, or uses the one that runs.
func (p *process) startDev(ctx context.Context) (*rest.Config, error) {
	data := p.opts.devData
	if data == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("--dev: %w; name a directory with --dev-data-dir", err)
		}
		data = filepath.Join(cache, "wasmctl", "dev")
	}
	p.log.Info("starting a local control plane", "data", data)
	cluster, err := devcluster.StartOrReuse(ctx, devcluster.Config{DataDir: data})
	if err != nil {
		return nil, fmt.Errorf("--dev: %w", err)
	}
	p.dev = cluster
	msg := "local control plane started; it stops with this process"
	if cluster.Reused() {
		msg = "local control plane is running already; it stops with the process that started it"
	}
	p.log.Info(msg, "url", cluster.URL())
	_, err = fmt.Fprintf(p.opts.streams.err, "\nFor another terminal:\n\n    export KUBECONFIG=%s\n\n", cluster.Kubeconfig())
	return cluster.RESTConfig(), err
}

// watchDev returns a context that ends when the control plane that we started
// ends by itself; errDevEnded is its cause then. release must be called.
func (p *process) watchDev(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	if p.dev == nil {
		return ctx, func() { cancel(nil) }
	}
	done, ended := p.dev.Done(), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
			err := fmt.Errorf("--dev: %w (%w)", errDevEnded, p.dev.Err())
			p.log.Error("stopping: the local control plane has ended by itself")
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}
