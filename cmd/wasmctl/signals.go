package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// followContext returns a context that SIGINT or SIGTERM ends, for commands that
// go on showing.
func followContext(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}

// stopOnSignals returns a context that the first SIGINT or SIGTERM ends, and a
// channel that the second closes (rule 9); a third does nothing. release gives
// the signals back to Go's default.
func stopOnSignals(parent context.Context, log *slog.Logger) (ctx context.Context, force <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(parent)
	forced := make(chan struct{})
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sig, ok := <-signals
		if !ok {
			return
		}
		log.Info("stopping; waiting for running reconciles; signal again to interrupt them", "signal", sig.String())
		cancel()
		if sig, ok = <-signals; ok {
			log.Warn("stopping by force", "signal", sig.String())
			close(forced)
		}
	}()
	return ctx, forced, func() {
		signal.Stop(signals)
		close(signals)
		<-ended
		cancel()
	}
}
