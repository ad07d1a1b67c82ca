// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/pods"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// reachLimit is the maximum time in which the processes must have answered and, in a cluster, the API server must have found them.
const reachLimit = 20 * time.Second

// steerOptions are the common options of the commands that talk to a running process.
type steerOptions struct {
	socket     string
	in, pod    string
	kubeconfig flags.Kubeconfig
	streams    streams
}

func (o *steerOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.socket, "socket", "", "Connect to this `socket` (default: that of the only process on this machine)")
	f.StringVar(&o.in, "in", "", "Connect to the pods of wasmctl in this `namespace` of the cluster, as kubectl exec does")
	f.StringVar(&o.pod, "pod", "", "Connect to this `pod` only (default namespace: that of the kubeconfig)")
	o.kubeconfig.Bind(cmd, "Use this kubeconfig `file` to connect to the cluster (default: as wasmctl run)")
}

// remote reports whether the processes run in pods of a cluster.
func (o *steerOptions) remote() bool { return o.in != "" || o.pod != "" }

// reach returns the processes that the flags name, with their status: the only one on this machine, or those
// of a cluster that answer.
func (o *steerOptions) reach(ctx context.Context) (fleet, error) {
	if o.socket != "" && o.remote() {
		return nil, failure.Usage.Wrap(errors.New("--socket cannot be combined with --in or --pod"))
	}
	asking, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	if !o.remote() {
		path := o.socket
		if path == "" {
			var err error
			if path, err = admin.Find(ctx); errors.Is(err, admin.ErrNotFound) {
				err = fmt.Errorf("%w, or the namespace of its pods with --in", err)
			}
			if err != nil {
				return nil, err
			}
		}
		c := admin.NewClient(path)
		st, err := c.Status(asking)
		return fleet{{client: c, status: st}}, err
	}
	config, err := requestConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	namespace, err := namespaceOr(o.in, o.kubeconfig)
	if err != nil {
		return nil, err
	}
	found, err := pods.Find(asking, config, namespace, o.pod)
	if err != nil {
		return nil, err
	}
	return o.reachAll(asking, found)
}

// reachAll asks the processes in pods for their status. If some of them do not answer, it prints a warning.
func (o *steerOptions) reachAll(ctx context.Context, found []pods.Pod) (f fleet, err error) {
	all, errs := make(fleet, len(found)), make([]error, len(found))
	var wg sync.WaitGroup
	for i := range found {
		all[i] = member{name: podPrefix + found[i].Name, client: admin.NewClientOver(found[i].String(), found[i].Dial)}
		wg.Go(func() { all[i].status, errs[i] = all[i].client.Status(ctx) })
	}
	wg.Wait()
	for i := range all {
		if errs[i] == nil {
			f = append(f, all[i])
		}
	}
	if len(f) == 0 {
		return nil, errors.Join(errs...)
	}
	for _, err := range errs {
		if err != nil && o.streams.err != nil {
			_, _ = fmt.Fprintln(o.streams.err, "wasmctl: warning:", text.Line(err.Error())) // advice
		}
	}
	return f, nil
}

// clientFor returns a client of the process that runs a controller.
func (o *steerOptions) clientFor(ctx context.Context, controller string) (fleet, *admin.Client, error) {
	f, err := o.reach(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := f.of(ctx, controller, nil)
	return f, c, err
}
