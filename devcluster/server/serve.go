// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/server/cluster"
)

// orphanLimit is how long a child whose parent is gone may take to stop: more than the sum of the parts' own limits. No other process would
// kill it.
const orphanLimit = 60 * time.Second

// serve runs the control plane until a signal or, if requested, until stdin ends.
func serve(opts options) int {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	if opts.exitOnStdinClose {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
			time.AfterFunc(orphanLimit, func() { os.Exit(exitFailure) })
		}()
	}
	context.AfterFunc(ctx, func() {
		stop() // from now on, a signal has its default effect and ends the process
		say("stopping")
	})
	start := time.Now()
	err := cluster.Run(ctx, opts.cluster, func(info cluster.Info) {
		announce(info)
		say("ready in %.1fs: export KUBECONFIG=%s", time.Since(start).Seconds(), info.Kubeconfig)
	})
	if code := exitCode(ctx, err); code != exitOK {
		say("%v", err)
		return code
	}
	say("stopped")
	return exitOK
}

// announce prints the line for programs.
func announce(info cluster.Info) {
	line, err := json.Marshal(info)
	if err != nil {
		panic("BUG: encode announcement: " + err.Error())
	}
	fmt.Println(string(line))
}

// exitCode returns the exit code after serving. A stop that was requested before the control plane was ready is a graceful stop too.
func exitCode(ctx context.Context, err error) int {
	var inUse *cluster.InUseError
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitOK
	case errors.As(err, &inUse):
		return exitDataInUse
	}
	return exitFailure
}

// stopSignals are the signals that request a graceful stop. SIGHUP is one of them unless it is ignored, as under nohup(1).
func stopSignals() []os.Signal {
	sigs := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		sigs = append(sigs, syscall.SIGHUP)
	}
	return sigs
}
