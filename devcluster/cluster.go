// SPDX-License-Identifier: Apache-2.0

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

// ErrInUse is returned by Start if another process uses the data dir. The error text names the directory and the process.
var ErrInUse = errors.New("devcluster: data dir in use")

// Config configures a control plane. The zero value is one on a free port whose data is deleted when it stops.
type Config struct {
	// Binary is the devcluster program; if empty, the one that Find returns.
	Binary string
	// DataDir contains data, keys and log. If empty, a private directory is used, which the program removes when it stops; such a control
	// plane cannot be restarted.
	DataDir string
	// Kubeconfig is the file for the admin kubeconfig; if empty, DataDir/kubeconfig.
	Kubeconfig string
	// Port on 127.0.0.1; 0 means a free one.
	Port int
	// UnsafeNoFsync makes writes faster. Data survives if the process is killed, but not if the machine crashes, which is sufficient for
	// tests.
	UnsafeNoFsync bool
	// APIServerFlags are additional flags of kube-apiserver, as --name=value.
	APIServerFlags []string
	// Stderr receives the program's messages for people; if nil, they are discarded. Error texts include the end of them in any case. It is
	// written to by one goroutine.
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

// complete finds the program and makes the paths absolute, so that Restart uses the same paths even if the working directory has changed.
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

// Cluster is a control plane. It is safe for concurrent use; Stop, Kill and Restart are serialized.
type Cluster struct {
	// Set on creation, never changed.
	cfg        Config // with the port in use
	url        string
	kubeconfig string
	admin      *rest.Config
	reused     bool

	ops  sync.Mutex // held during Stop, Kill and Restart
	mu   sync.Mutex
	proc *process // the current or last run; nil if reused; guarded by mu
}

// Start starts a control plane as a child process and returns when it is ready, which takes about three seconds. ctx limits only the start.
// The caller must call Stop; if the calling process dies, the child stops by itself.
//
// The error is ErrInUse if another process uses the data dir, and ErrNotFound if there is no devcluster program.
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

// newCluster returns the control plane of a kubeconfig.
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

// Stop stops the control plane gracefully, which takes about a second, and returns when it has exited. If it has ended already, or is
// reused, Stop does nothing.
func (c *Cluster) Stop() error {
	c.ops.Lock()
	defer c.ops.Unlock()
	if proc := c.process(); proc != nil && !proc.ended() {
		return proc.stop()
	}
	return nil
}

// Kill ends the control plane at once, like kill -9, and returns when it is gone. Its data remains. It is an error to kill a reused control
// plane, because it belongs to another process.
func (c *Cluster) Kill() error {
	c.ops.Lock()
	defer c.ops.Unlock()
	if c.reused {
		return errors.New("devcluster: kill: it was started by another process")
	}
	c.process().kill()
	return nil
}

// Restart starts the control plane again with the same data and port, after a graceful stop if it is still running, and returns when it is
// ready. Clients with a RESTConfig or a kubeconfig continue to work.
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

// Done returns a channel that is closed when the current run of the control plane has ended for any reason; after a Restart there is
// another one. The channel of a reused control plane is never closed.
func (c *Cluster) Done() <-chan struct{} {
	if proc := c.process(); proc != nil {
		return proc.done
	}
	return nil
}

// Err returns why the control plane ended by itself. It is nil while it runs, after Stop and Kill, and always for a reused one.
func (c *Cluster) Err() error {
	proc := c.process()
	if proc == nil || !proc.ended() || proc.asked.Load() {
		return nil
	}
	return fmt.Errorf("devcluster: %w", proc.failure())
}

// RESTConfig returns a client configuration of an admin without a client-side rate limit. The caller may change it.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the absolute path of the admin kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// URL returns the API server's address, https://127.0.0.1:PORT.
func (c *Cluster) URL() string { return c.url }

// Reused reports whether another process started the control plane. Stop then leaves it running.
func (c *Cluster) Reused() bool { return c.reused }
