// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// TestMain prevents SIGUSR2 from ending the process before the trigger listens.
func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	os.Exit(m.Run())
}

func TestSignal_AsksForAllObjects(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	got, ended := make(chan []abi.Key), make(chan error, 1)
	s := signalTrigger{syscall.SIGUSR2}
	go func() {
		ended <- s.Run(ctx, func(ctx context.Context, objects ...abi.Key) {
			select {
			case got <- objects:
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
		case objects := <-got:
			if len(objects) > 0 {
				t.Errorf("requests %v, want all", objects)
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
