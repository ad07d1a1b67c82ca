// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// errDevEnded is the error of a process whose local control plane ended before it. The control plane
// is never restarted, so waiting for it would be useless.
var errDevEnded = errors.New("the local control plane has exited; the next run with --dev reuses its data")

// loadConfig finds the cluster as kubectl does. Without a kubeconfig, it uses the pod's service
// account.
func loadConfig(k flags.Kubeconfig) (*rest.Config, error) {
	config := k.Config()
	rc, err := config.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, plan.ErrNoCluster
	case err != nil && k.Context != "" && !hasContext(config, k.Context):
		return nil, fmt.Errorf("--context %q: not in the kubeconfig; list its contexts with kubectl config get-contexts", k.Context)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return rc, nil
}

// requestLimit is the maximum time of a request of a command. The API server itself ends most requests after a minute.
const requestLimit = time.Minute

// requestConfig is like loadConfig, for a command that sends single requests: it does not wait without end for an API server that does not
// answer.
func requestConfig(k flags.Kubeconfig) (*rest.Config, error) {
	config, err := loadConfig(k)
	if err != nil {
		return nil, failure.Cluster.Wrap(err)
	}
	config.Timeout = requestLimit
	config.QPS = -1 // the API server's priority and fairness limits requests
	return config, nil
}

// namespaceOr returns a namespace or, if it is empty, that of the kubeconfig.
func namespaceOr(namespace string, k flags.Kubeconfig) (string, error) {
	if namespace != "" {
		return namespace, nil
	}
	namespace, _, err := k.Config().Namespace()
	return namespace, failure.Cluster.Wrap(err)
}

// hasContext reports whether a kubeconfig has a context. If the kubeconfig cannot be read, it reports
// true, because another error describes that problem.
func hasContext(config clientcmd.ClientConfig, name string) bool {
	raw, err := config.RawConfig()
	return err != nil || raw.Contexts[name] != nil
}

// connection is the cluster of a process.
type connection struct {
	config *rest.Config
	dev    *devcluster.Cluster // nil unless --dev
}

// connect finds the cluster of the flags, or starts the local one.
func connect(ctx context.Context, o *flags.Process, s streams, log *slog.Logger) (c connection, err error) {
	if o.Dev {
		c, err = startDev(ctx, o, s, log)
	} else {
		c.config, err = loadConfig(o.Kubeconfig)
	}
	if errors.Is(err, plan.ErrNoCluster) {
		err = fmt.Errorf("%w, or use a local control plane with --dev", err)
	}
	return c, failure.Cluster.Wrap(err)
}

// startDev starts the local control plane, or uses a running one.
func startDev(ctx context.Context, o *flags.Process, s streams, log *slog.Logger) (connection, error) {
	data := o.DevData
	if data == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return connection{}, fmt.Errorf("--dev: %w; name a directory with --dev-data-dir", err)
		}
		data = filepath.Join(cache, "wasmctl", "dev")
	}
	log.Info("starting a local control plane", "data", data)
	task := s.progress.Start("starting the local control plane")
	cluster, err := devcluster.StartOrReuse(ctx, devcluster.Config{DataDir: data})
	task.End()
	if err != nil {
		return connection{}, fmt.Errorf("--dev: %w", err)
	}
	msg := "local control plane started; it stops with this process"
	if cluster.Reused() {
		msg = "using the running local control plane; it stops with the process that started it"
	}
	log.Info(msg, "url", cluster.URL())
	_, err = fmt.Fprintf(s.err, "\nFor another terminal:\n\n    export KUBECONFIG=%s\n\n", cluster.Kubeconfig())
	return connection{cluster.RESTConfig(), cluster}, err
}

// close stops the local control plane, if connect has started it.
func (c connection) close() error {
	if c.dev == nil {
		return nil
	}
	return c.dev.Stop()
}

// watch returns a context that is canceled with the cause errDevEnded if the local control plane ends
// by itself. The caller must call release.
func (c connection) watch(parent context.Context, log *slog.Logger) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	if c.dev == nil {
		return ctx, func() { cancel(nil) }
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-c.dev.Done():
			log.Error("stopping: the local control plane has exited")
			cancel(fmt.Errorf("--dev: %w (%w)", errDevEnded, c.dev.Err()))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		wg.Wait()
	}
}
