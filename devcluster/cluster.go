package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrInUse is the error of Start where another process serves on the data dir.
// The text names the directory and the process.
var ErrInUse = errors.New("devcluster: data dir in use")

// Config says which control plane to start. The zero value is one on a free
// port whose data vanishes when it stops.
type Config struct {
	// Binary is the devcluster program; empty means what Find finds.
	Binary string
	// DataDir holds data, keys and log. Empty means a private directory, which the
	// program removes when it stops; such a control plane cannot be restarted.
	DataDir string
	// Kubeconfig is the file to write the admin kubeconfig to; empty means
	// DataDir/kubeconfig.
	Kubeconfig string
	// Port on 127.0.0.1; 0 means a free one.
	Port int
	// UnsafeNoFsync makes writes faster. Data outlives a killed process, but not a
	// crash of the machine: right for tests.
	UnsafeNoFsync bool
	// APIServerFlags are further flags of kube-apiserver, as --name=value.
	APIServerFlags []string
	// Stderr gets what the program prints for humans; nil drops it. An error's
	// text carries the end of it in any case. Writes come from one goroutine.
	Stderr io.Writer
}

func (cfg Config) args() []string {
	args := []string{"--exit-on-stdin-close", "--port=" + strconv.Itoa(cfg.Port)}
	if cfg.DataDir != "" {
		args = append(args, "--data-dir="+cfg.DataDir)
	}
	if cfg.Kubeconfig != "" {
		args = append(args, "--kubeconfig="+cfg.Kubeconfig)
	}
	if cfg.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	for _, flag := range cfg.APIServerFlags {
		args = append(args, "--apiserver-flag="+flag)
	}
	return args
}

// complete finds the program and makes the paths absolute: Restart must mean
// the same ones, wherever the process is by then.
func (cfg Config) complete() (_ Config, err error) {
	if cfg.Binary == "" {
		if cfg.Binary, err = Find(); err != nil {
			return cfg, err
		}
	}
	for _, path := range []*string{&cfg.DataDir, &cfg.Kubeconfig} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return cfg, fmt.Errorf("devcluster: path[%s]: %w", *path, err)
		}
	}
	return cfg, nil
}

// Cluster is a control plane. All methods may be called at the same time from
// several goroutines; Stop, Kill and Restart then happen one after the other.
type Cluster struct {
	// Set when made, never changed.
	cfg        Config // with the port that is served
	url        string
	kubeconfig string
	admin      *rest.Config
	reused     bool

	ops  sync.Mutex // held by Stop, Kill and Restart from begin to end
	mu   sync.Mutex
	proc *process // the present run, or the last; nil if reused; guarded by mu
}

// Start starts a control plane as a child process and returns when it is ready,
// which takes about three seconds. ctx bounds the start only. The caller must
// call Stop; if the calling process dies instead, the child stops by itself.
//
// The error is ErrInUse where another process serves on the data dir, and
// ErrNotFound where there is no program to run.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	proc, info, err := startProcess(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c, err := newCluster(info.Kubeconfig)
	if err == nil {
		cfg.Port, err = portOf(c.url)
	}
	if err != nil {
		return nil, errors.Join(err, proc.stop())
	}
	c.cfg, c.proc = cfg, proc
	return c, nil
}

// newCluster returns the control plane that the kubeconfig names.
func newCluster(kubeconfig string) (*Cluster, error) {
	admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig[%s]: %w", kubeconfig, err)
	}
	admin.QPS = -1
	return &Cluster{url: admin.Host, kubeconfig: kubeconfig, admin: admin}, nil
}

func portOf(server string) (int, error) {
	u, err := url.Parse(server)
	if err != nil {
		return 0, fmt.Errorf("devcluster: URL: %w", err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0, fmt.Errorf("devcluster: URL[%s]: port: %w", server, err)
	}
	return port, nil
}

// Stop ends the control plane cleanly, which takes about a second, and returns
// when it has exited. On one that has ended, or that is reused, it does
// nothing.
func (c *Cluster) Stop() error {
	c.ops.Lock()
	defer c.ops.Unlock()
	if proc := c.process(); proc != nil && !proc.ended() {
		return proc.stop()
	}
	return nil
}

// Kill ends the control plane at once, as kill -9 does, and returns when it is
// gone. Its data stays. It is an error to kill one that is reused: it belongs to
// someone else.
func (c *Cluster) Kill() error {
	c.ops.Lock()
	defer c.ops.Unlock()
	if c.reused {
		return errors.New("devcluster: kill: it was started by another process")
	}
	c.process().kill()
	return nil
}

// Restart starts the control plane again on the same data and the same port,
// after an ordered stop if it still runs, and returns when it is ready. Clients
// that hold a RESTConfig or a kubeconfig go on.
func (c *Cluster) Restart(ctx context.Context) error {
	c.ops.Lock()
	defer c.ops.Unlock()
	switch {
	case c.reused:
		return errors.New("devcluster: restart: it was started by another process")
	case c.cfg.DataDir == "":
		return errors.New("devcluster: restart: without DataDir the data is gone")
	}
	if proc := c.process(); !proc.ended() {
		if err := proc.stop(); err != nil {
			return err
		}
	}
	proc, _, err := startProcess(ctx, c.cfg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proc = proc
	return nil
}

func (c *Cluster) process() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc
}

// Done returns a channel that is closed when the present run of the control
// plane has ended, for whatever reason; after a Restart there is another one.
// The channel of a reused control plane is never closed.
func (c *Cluster) Done() <-chan struct{} {
	if proc := c.process(); proc != nil {
		return proc.done
	}
	return nil
}

// Err says why the control plane ended by itself. It is nil while it runs, after
// Stop and Kill, and always for one that is reused.
func (c *Cluster) Err() error {
	proc := c.process()
	if proc == nil || !proc.ended() || proc.asked.Load() {
		return nil
	}
	return fmt.Errorf("devcluster: %w", proc.failure())
}

// RESTConfig returns an admin's client configuration without a client-side rate
// limit. The caller may change it.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the absolute path of the admin kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// URL returns the API server's address, https://127.0.0.1:PORT.
func (c *Cluster) URL() string { return c.url }

// Reused says whether another process started the control plane. Stop then
// leaves it running.
func (c *Cluster) Reused() bool { return c.reused }
