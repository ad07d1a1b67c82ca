// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes control plane inside the calling process: etcd, kube-apiserver, and the controllers of
// kube-controller-manager that are required for developing controllers (garbage collection, namespace deletion, service accounts,
// aggregated cluster roles, the root CA).
//
// There are no nodes and there is no scheduler: objects are stored, validated, defaulted, watched, owned and garbage-collected as in any
// cluster, but pods never run.
//
// Feature gates, klog and the capabilities package are process-wide state, so a process should run only one control plane. Several at once
// work as long as they have the same configuration.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/version"
)

// Time limits for the start of the parts.
const (
	etcdStartLimit = 30 * time.Second
	readyLimit     = 60 * time.Second
)

// Config configures Run. The zero value is a control plane on a free port whose data is deleted when it stops.
type Config struct {
	// DataDir contains the etcd data, the keys and certificates, the lock and the servers' log. It is created if it does not exist. If
	// empty, a private directory is used, which Run removes.
	DataDir string
	// Kubeconfig is the file for the admin kubeconfig. If empty, it is DataDir/kubeconfig.
	Kubeconfig string
	// Port of the API server on 127.0.0.1; 0 means a free one.
	Port int
	// UnsafeNoFsync prevents etcd from syncing its writes to disk. Data then survives the process, even after a kill -9, but not a crash of
	// the machine.
	UnsafeNoFsync bool
	// NoControllers runs etcd and kube-apiserver only.
	NoControllers bool
	// APIServerFlags are additional flags of kube-apiserver, as --name=value. They come after Run's own, so they take precedence.
	APIServerFlags []string
	// Verbosity is klog's level on stderr. With 0, the servers' errors go only to DataDir/server.log.
	Verbosity int
}

// Info is what a client of a ready control plane needs to know. It is printed as one line of JSON, and stored in the lock file for other
// processes.
type Info struct {
	// URL of the API server, https://127.0.0.1:PORT.
	URL string `json:"url,omitempty"`
	// Kubeconfig is the absolute path of the admin kubeconfig.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// PID is the process that runs the control plane.
	PID int `json:"pid"`
	// Version of Kubernetes, for example v1.36.3.
	Version string `json:"version,omitempty"`
}

// Version returns the Kubernetes version that Run provides.
func Version() string { return version.Get().GitVersion }

// Run runs a control plane until ctx ends, and returns once everything has stopped: nil after a graceful stop, otherwise why it could not
// start, run or stop. It calls ready once, when the API server's /readyz returns ok, the controllers have been started and the kubeconfig
// is written; ready must not block.
//
// The error is an InUseError if another process uses the data dir.
func Run(ctx context.Context, cfg Config, ready func(Info)) (err error) {
	private, err := newRunDir(runDirBase())
	if err != nil {
		return err
	}
	defer private.remove()
	if cfg, err = cfg.complete(private.path); err != nil {
		return err
	}
	data, err := lockDataDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer data.unlock()
	logs, err := openServerLog(cfg)
	if err != nil {
		return err
	}
	defer logs.close()

	if err := runLocked(ctx, cfg, private.path, func(info Info) error {
		if err := data.record(info); err != nil {
			return err
		}
		ready(info)
		return nil
	}); err != nil {
		return logs.explain(err)
	}
	return nil
}

// complete sets the paths that depend on others and makes them absolute, because a reader may have another working directory.
func (cfg Config) complete(private string) (_ Config, err error) {
	if cfg.DataDir == "" {
		cfg.DataDir = filepath.Join(private, "data")
	}
	if cfg.DataDir, err = filepath.Abs(cfg.DataDir); err != nil {
		return cfg, fmt.Errorf("data dir[%s]: %w", cfg.DataDir, err)
	}
	if cfg.Kubeconfig == "" {
		cfg.Kubeconfig = filepath.Join(cfg.DataDir, "kubeconfig")
	}
	if cfg.Kubeconfig, err = filepath.Abs(cfg.Kubeconfig); err != nil {
		return cfg, fmt.Errorf("kubeconfig[%s]: %w", cfg.Kubeconfig, err)
	}
	return cfg, nil
}

// runLocked starts the parts one after the other and stops them in reverse order: the API server needs etcd, and the controllers need the
// API server.
func runLocked(ctx context.Context, cfg Config, sockDir string, ready func(Info) error) (err error) {
	keys, err := ensurePKI(filepath.Join(cfg.DataDir, "pki"))
	if err != nil {
		return err
	}
	etcd, err := startEtcd(ctx, cfg, sockDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.stop()) }()
	api, err := startAPIServer(ctx, cfg, etcd.url, keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.stop()) }()
	client := keys.adminClient(api.url)
	if err := waitReady(ctx, api, client); err != nil {
		return err
	}
	if !cfg.NoControllers {
		stop, err := startControllers(ctx, client, keys.caPEM)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := writeKubeconfig(cfg.Kubeconfig, client); err != nil {
		return err
	}
	if err := ready(Info{URL: api.url, Kubeconfig: cfg.Kubeconfig, PID: os.Getpid(), Version: Version()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-api.done:
		return fmt.Errorf("kube-apiserver: ended by itself: %w", api.err)
	case err := <-etcd.failed():
		return fmt.Errorf("etcd: ended by itself: %w", err)
	}
}

// waitReady returns when the API server's /readyz returns ok.
func waitReady(ctx context.Context, api *apiServer, rc *restclient.Config) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return fmt.Errorf("kube-apiserver: make a client: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		code := 0
		res := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code == http.StatusOK {
			return nil
		}
		if err := res.Error(); err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-api.done:
			return fmt.Errorf("kube-apiserver: ended before it was ready: %w", api.err)
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver: not ready: %w (last answer: %w)", ctx.Err(), errorOr(last, "none"))
		case <-tick.C:
		}
	}
}

// errorOr returns err, or an error with the text if err is nil.
func errorOr(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}
