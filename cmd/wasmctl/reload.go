// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/follow"
)

// follow follows the files of a controller until the controller or ctx ends.
func (p *process) follow(ctx context.Context, name string, f *follow.Follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers[name] = f
	ctx, stop := context.WithCancel(ctx)
	p.wg.Go(func() {
		select {
		case <-f.Controller.Ended():
		case <-ctx.Done():
		}
		stop()
	})
	p.wg.Go(func() { f.Run(ctx) })
}

// reloadOnHangup swaps in the modules of all files at each SIGHUP, until ctx ends.
func (p *process) reloadOnHangup(ctx context.Context) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
		}
		p.mu.Lock()
		for _, f := range p.followers {
			p.wg.Go(func() { f.Reload(ctx) })
		}
		p.mu.Unlock()
	}
}
