// SPDX-License-Identifier: Apache-2.0

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

// How long, and how often, StartOrReuse retries if the process that uses the data dir is just starting or stopping.
const (
	reuseLimit = 90 * time.Second
	reuseRetry = 200 * time.Millisecond
)

// EnvKubeconfig is the environment variable in which "devcluster -- COMMAND" passes its admin kubeconfig to COMMAND.
const EnvKubeconfig = "DEVCLUSTER_KUBECONFIG"

// Attach returns the control plane of a kubeconfig, which was started by another process. It is an error if the control plane does not
// answer.
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

// StartOrReuse starts a control plane on cfg.DataDir, or attaches to the one that is running on it already: Reused reports which. A reused
// one shares only DataDir with cfg; it ends when the process that started it ends it.
func StartOrReuse(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.DataDir == "" {
		return nil, errors.New("devcluster: start or reuse: DataDir is required")
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
		// The holder is either starting, and will be ready soon, or stopping, and will be gone.
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; and it cannot be reused: %w", err, attachErr)
		}
	}
}

// attachHolder attaches to the control plane that holds the lock file in the data dir.
func attachHolder(ctx context.Context, dataDir string) (*Cluster, error) {
	f, err := os.Open(filepath.Join(dataDir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("data dir[%s]: %w", dataDir, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	// Only the first value: a writer may be about to truncate an older text after it.
	var info announcement
	if err := json.NewDecoder(f).Decode(&info); err != nil {
		return nil, fmt.Errorf("data dir[%s]: read lock: %w", dataDir, err)
	}
	if info.Kubeconfig == "" {
		return nil, fmt.Errorf("data dir[%s]: pid %d is not ready yet", dataDir, info.PID)
	}
	return Attach(ctx, info.Kubeconfig)
}
