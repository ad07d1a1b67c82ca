// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// forceTime is the maximum time that a process takes to end after the second signal. Then it exits at
// once, even if a guest, a manifest or a file makes it hang.
const forceTime = 700 * time.Millisecond

// takeSignals handles SIGINT and SIGTERM, which end a Go process at once by default. No other code may
// handle them, so that all commands end in the same way. The first signal calls first, and the second
// one calls second. These functions must not block, and must not log, because a log without a reader
// blocks. After the second signal, the process ends within forceTime, with exitForced. release
// restores the default.
func takeSignals(stderr io.Writer, first, second func(os.Signal)) (release func()) {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sig, ok := <-signals
		if !ok {
			return
		}
		first(sig)
		if sig, ok = <-signals; ok {
			time.AfterFunc(forceTime, func() { exitByForce(stderr) })
			second(sig)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}

// exitByForce ends the process. The reason is written only if that does not block.
func exitByForce(stderr io.Writer) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = fmt.Fprintf(stderr, "wasmctl: forced exit: still running %v after the second signal\n", forceTime)
	}()
	select {
	case <-written:
	case <-time.After(forceTime / 7):
	}
	os.Exit(exitForced)
}

// followContext returns a context that SIGINT or SIGTERM ends, for commands that print continuously.
func followContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	release := takeSignals(os.Stderr, func(os.Signal) { cancel() }, func(os.Signal) {})
	return ctx, func() {
		release()
		cancel()
	}
}

// stopOnSignals returns a context that the first SIGINT or SIGTERM ends, and a channel that the second
// one closes (rule 9). A third signal does nothing. release restores Go's default.
func stopOnSignals(parent context.Context, log *slog.Logger) (ctx context.Context, force <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(parent)
	forced := make(chan struct{})
	lines, logged := make(chan func(), 2), make(chan struct{})
	go func() {
		defer close(logged)
		for write := range lines {
			write()
		}
	}()
	giveBack := takeSignals(os.Stderr, func(sig os.Signal) {
		cancel()
		lines <- func() {
			log.Info("stopping; waiting for running reconciles; signal again to interrupt them", "signal", sig.String())
		}
	}, func(sig os.Signal) {
		close(forced)
		lines <- func() { log.Warn("stopping by force", "signal", sig.String()) }
	})
	return ctx, forced, func() {
		giveBack()
		close(lines)
		<-logged
		cancel()
	}
}
