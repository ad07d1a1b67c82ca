// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
)

// demo is one run of the demonstration.
type demo struct {
	bin, example string
	svg          string // the file for the terminal's picture; empty for none
	socket       string // of wasmctl

	cluster *devcluster.Cluster
	client  dynamic.Interface
	wasmctl *process
}

// step is one event that must happen in time.
type step struct {
	what  string
	limit time.Duration
	do    func(context.Context) error
}

// run makes all steps. It never leaves a process running.
func (d *demo) run(ctx context.Context) (err error) {
	data, err := os.MkdirTemp("", "wasmctl-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.cleanUp(data)) }()
	d.socket = filepath.Join(data, "wasmctl.sock")
	for _, s := range []step{
		{"start a control plane: kube-apiserver and etcd", 60 * time.Second, func(ctx context.Context) error { return d.startCluster(ctx, data) }},
		{"install the CRD", 20 * time.Second, d.installCRD},
		{"start wasmctl run with the example module", 20 * time.Second, d.startWasmctl},
		{"create ConfigMapGenerator default/hello: its ConfigMap appears", 20 * time.Second, d.create},
		{"change its content: the ConfigMap follows", 20 * time.Second, d.change},
		{"ask why it ran: wasmctl status and explain", 20 * time.Second, d.explain},
		{"delete the ConfigMap by hand: it comes back", 20 * time.Second, d.deleteChild},
		{"delete the ConfigMapGenerator: the garbage collector takes the ConfigMap", 30 * time.Second, d.deleteOwner},
		{"stop wasmctl with SIGTERM: it exits with 0", 20 * time.Second, d.stopWasmctl},
		{"stop the control plane: no process is left", 30 * time.Second, d.stopCluster},
	} {
		if err := d.step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) step(ctx context.Context, s step) error {
	fmt.Printf("\n==> %s\n", s.what)
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("did not happen within %v", s.limit))
	defer cancel()
	if err := s.do(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return fmt.Errorf("%s: %w", s.what, err)
	}
	fmt.Printf("    ok, %.1fs\n", time.Since(begin).Seconds())
	return nil
}

func (d *demo) startCluster(ctx context.Context, data string) error {
	cluster, err := devcluster.Start(ctx, devcluster.Config{
		Binary: cmp.Or(os.Getenv(devcluster.EnvBinary), filepath.Join(d.bin, "devcluster")), DataDir: filepath.Join(data, "cluster"), UnsafeNoFsync: true,
	})
	if err != nil {
		return err
	}
	d.cluster = cluster
	fmt.Printf("    KUBECONFIG=%s\n", cluster.Kubeconfig())
	d.client, err = dynamic.NewForConfig(cluster.RESTConfig())
	return err
}

func (d *demo) startWasmctl(ctx context.Context) (err error) {
	d.wasmctl, err = start(filepath.Join(d.bin, "wasmctl"), "run", filepath.Join(d.bin, "examples", "configmapgenerator.wasm"),
		"--for", "configmapgenerators.examples.wasmctl.dev", "--grant-manifest", "--kubeconfig", d.cluster.Kubeconfig(), "--socket", d.socket)
	if err != nil {
		return err
	}
	return d.wasmctl.waitForLine(ctx, "reconciling")
}

func (d *demo) stopWasmctl(ctx context.Context) error {
	if err := d.wasmctl.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return d.wasmctl.wait(ctx)
}

func (d *demo) stopCluster(context.Context) error {
	err := d.cluster.Stop()
	d.cluster = nil
	return err
}

// cleanUp stops the processes that a failed step has left.
func (d *demo) cleanUp(data string) error {
	if d.wasmctl != nil {
		d.wasmctl.kill()
	}
	var err error
	if d.cluster != nil {
		err = d.cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(data))
}
