// SPDX-License-Identifier: Apache-2.0

// Package devclustertest gives tests a real Kubernetes control plane.
//
// Shared returns one for the whole test run; each test uses its own Namespace in it. Own returns one for a single test, which may kill and
// restart it. Limited creates clients with few permissions, Proxy a connection that can be cut or stalled, and Apply creates objects from
// YAML, including CRDs.
//
// A package that uses Shared contains
//
//	func TestMain(m *testing.M) { devclustertest.Main(m) }
//
// Nothing is skipped if the devcluster program is missing: the test fails and explains how to build it.
package devclustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
)

// startLimit is the time limit for the start of a control plane, which takes 3 s on an idle machine.
const startLimit = 2 * time.Minute

// shared is the control plane that Shared returns. The first call starts it, and Main stops it.
var shared = struct {
	mu      sync.Mutex
	cluster *devcluster.Cluster // guarded by mu
	err     error               // guarded by mu
}{}

// Shared returns the control plane of this test run: the one that "devcluster -- go test ./..." has put into DEVCLUSTER_KUBECONFIG,
// otherwise one child per test binary, started by the first call. Others use it concurrently: work in a Namespace, and do not kill it.
func Shared(t testing.TB) *devcluster.Cluster {
	t.Helper()
	cluster, err := Get()
	if err != nil {
		t.Fatalf("shared control plane: %v", err)
	}
	return cluster
}

// Get is like Shared, for examples, which have no testing.TB.
func Get() (*devcluster.Cluster, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = startShared()
	}
	return shared.cluster, shared.err
}

// startShared does not use a test's context, because the control plane outlives the test.
func startShared() (*devcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if kubeconfig := os.Getenv(devcluster.EnvKubeconfig); kubeconfig != "" {
		c, err := devcluster.Attach(ctx, kubeconfig)
		if err != nil {
			err = fmt.Errorf("%s: %w: unset it to have one started", devcluster.EnvKubeconfig, err)
		}
		return c, err
	}
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	return devcluster.Start(ctx, devcluster.Config{Binary: binary, UnsafeNoFsync: true})
}

// Main runs the tests, stops the shared control plane, and exits. Without Main, the control plane still stops when the test binary ends,
// but errors are not reported.
func Main(m *testing.M) {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "shared control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Own starts a control plane for this test only, on a new data dir; it is stopped when the test ends. The test may Kill and Restart it. The
// flags are additional ones of kube-apiserver, as --name=value.
func Own(t testing.TB, apiServerFlags ...string) *devcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	c, err := devcluster.Start(ctx, devcluster.Config{
		Binary: Binary(t), DataDir: t.TempDir(), UnsafeNoFsync: true, APIServerFlags: apiServerFlags,
	})
	if err != nil {
		t.Fatalf("own control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("own control plane: %v", err)
		}
	})
	return c
}

// Admin returns a client configuration of an admin for the Shared control plane.
func Admin(t testing.TB) *rest.Config {
	t.Helper()
	return Shared(t).RESTConfig()
}

// Binary returns the path of the devcluster program: that in WASMCTL_DEVCLUSTER, otherwise bin/devcluster of this checkout, otherwise the
// result of devcluster.Find. The test fails if there is none.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func findBinary() (string, error) {
	if os.Getenv(devcluster.EnvBinary) == "" {
		if root, err := moduleRoot(); err == nil {
			path := filepath.Join(root, "bin", "devcluster")
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	path, err := devcluster.Find()
	if errors.Is(err, devcluster.ErrNotFound) {
		return "", errors.New("the devcluster program is missing: run 'make devcluster' (minutes the first time), " +
			"or set " + devcluster.EnvBinary + " to its path")
	}
	return path, err
}

// moduleRoot returns the directory of the go.mod above the working directory, which in a test is that of the package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}
