package trigger_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain keeps SIGUSR2 from ending the process before a Signal listens.
func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	os.Exit(m.Run())
}
