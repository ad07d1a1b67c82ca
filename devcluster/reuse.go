package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
)

// How long, and how often, StartOrReuse tries where the data dir's holder is
// just starting or stopping.
const (
	reuseLimit = 90 * time.Second
	reuseRetry = 200 * time.Millisecond
)

// EnvKubeconfig is the environment variable in which "devcluster -- COMMAND"
// hands its admin kubeconfig to COMMAND.
const EnvKubeconfig = "DEVCLUSTER_KUBECONFIG"

// Attach returns the control plane, started by another process, that the
// kubeconfig names. It is an error if it does not answer.
func Attach(ctx context.Context, kubeconfig string) (*Cluster, error) {
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig[%s]: %w", kubeconfig, err)
	}
	c, err := newCluster(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig[%s]: %w", kubeconfig, err)
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("devcluster[%s]: not ready: %w", c.url, err)
	}
	c.reused = true
	return c, nil
}

// StartOrReuse starts a control plane on cfg.DataDir, or attaches to the one
// that serves on it already: Reused tells which. Of a reused one, only DataDir is
// what cfg says; it ends when its own starter ends it.
func StartOrReuse(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.DataDir == "" {
		return nil, errors.New("devcluster: start or reuse: a DataDir is needed")
	}
	ctx, cancel := context.WithTimeout(ctx, reuseLimit)
	defer cancel()
	tick := time.NewTicker(reuseRetry)
	defer tick.Stop()
	for {
		c, err := Start(ctx, cfg)
		if !errors.Is(err, ErrInUse) {
			return c, err
		}
		c, attachErr := attachHolder(ctx, cfg.DataDir)
		if attachErr == nil {
			return c, nil
		}
		// The holder starts, and will be ready soon, or stops, and will be gone.
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; and it cannot be reused: %w", err, attachErr)
		}
	}
}

// attachHolder attaches to the control plane whose lock file is in the data dir.
func attachHolder(ctx context.Context, dataDir string) (*Cluster, error) {
	f, err := os.Open(filepath.Join(dataDir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("data dir[%s]: %w", dataDir, err)
	}
	defer func() { _ = f.Close() }() // only read
	// The first value only: a writer may be about to cut off an older text behind it.
	var info announcement
	if err := json.NewDecoder(f).Decode(&info); err != nil {
		return nil, fmt.Errorf("data dir[%s]: read lock: %w", dataDir, err)
	}
	if info.Kubeconfig == "" {
		return nil, fmt.Errorf("data dir[%s]: pid %d is not ready yet", dataDir, info.PID)
	}
	return Attach(ctx, info.Kubeconfig)
}
