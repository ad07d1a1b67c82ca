// Package cluster runs a Kubernetes control plane inside the calling process:
// etcd, kube-apiserver, and those controllers of kube-controller-manager
// without which nobody can develop a controller (garbage collection, namespace
// deletion, service accounts, aggregated cluster roles, the root CA).
//
// There are no nodes and there is no scheduler: objects are stored, checked,
// defaulted, watched, owned and collected as in any cluster, but pods never run.
//
// Feature gates, klog and the capabilities package are state of the whole
// process, so one process should hold one control plane. Several at once work
// as long as they are configured alike.
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

// How long the parts may take to start before Run gives up.
const (
	etcdStartLimit = 30 * time.Second
	readyLimit     = 60 * time.Second
)

// Config says what Run runs. The zero value is a control plane on a free port
// whose data vanishes when it stops.
type Config struct {
	// DataDir holds the etcd data, the keys and certificates, the lock and the
	// servers' log. It is made where it is missing. Empty means a private
	// directory that Run removes.
	DataDir string
	// Kubeconfig is the file that the admin kubeconfig is written to.
	// Empty means DataDir/kubeconfig.
	Kubeconfig string
	// Port of the API server on 127.0.0.1; 0 means a free one.
	Port int
	// UnsafeNoFsync stops etcd from syncing its writes to the disk. Data then
	// outlives the process, also after a kill -9, but not the machine.
	UnsafeNoFsync bool
	// NoControllers runs etcd and kube-apiserver only.
	NoControllers bool
	// APIServerFlags are further flags of kube-apiserver, as --name=value. They
	// come after Run's own, so that they win.
	APIServerFlags []string
	// Verbosity is klog's level on stderr. 0 keeps the servers quiet: their
	// errors go to DataDir/server.log.
	Verbosity int
}

// Info is what a user of a ready control plane has to know. It is printed as
// one line of JSON, and kept in the lock file for others to find.
type Info struct {
	// URL of the API server, https://127.0.0.1:PORT.
	URL string `json:"url,omitempty"`
	// Kubeconfig is the absolute path of the admin kubeconfig.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// PID of the process that holds the control plane.
	PID int `json:"pid"`
	// Version of Kubernetes, for example v1.36.3.
	Version string `json:"version,omitempty"`
}

// Version returns the version of Kubernetes that Run serves.
func Version() string { return version.Get().GitVersion }

// Run runs a control plane until ctx ends, and returns once all of it has
// stopped: nil after an ordered stop, otherwise why it could not start, run or
// stop. It calls ready once, when the API server's /readyz says ok, the
// controllers have been started and the kubeconfig is written; ready must not block.
//
// The error is an InUseError where another process holds the data dir.
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

// complete fills in the paths that follow from others and makes them absolute:
// who reads them may be in another working directory.
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

// runLocked starts the parts one after the other and stops them in the reverse
// order: the API server needs etcd, and the controllers need the API server.
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

// waitReady returns when the API server's /readyz says ok.
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

// errorOr returns err, or an error that says text where err is nil.
func errorOr(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}
