package trigger_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
)

// TestMain keeps SIGUSR2 from ending the process before the trigger listens.
func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	os.Exit(m.Run())
}

func TestSignal_AsksForAllObjects(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	got, ended := make(chan trigger.Trigger), make(chan error, 1)
	s := trigger.Signal{Signal: syscall.SIGUSR2}
	go func() {
		ended <- s.Run(ctx, func(ctx context.Context, tr trigger.Trigger) {
			select {
			case got <- tr:
			case <-ctx.Done():
			}
		})
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for { // until it listens
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		select {
		case tr := <-got:
			if diff := cmp.Diff(trigger.Trigger{All: true}, tr); diff != "" {
				t.Error(diff)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if s.String() != "signal user defined signal 2" {
				t.Error(s.String())
			}
			return
		case <-tick.C:
		}
	}
}
