// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/internal/logging"
)

// TestQuietLibraries_NoBodies: requests and responses of client-go contain Secrets, and are not logged
// at any verbosity.
func TestQuietLibraries_NoBodies(t *testing.T) {
	ctx := t.Context()
	d := logging.Demote(logging.NewConsole(&bytes.Buffer{}, slog.LevelDebug))
	for v, want := range map[int]bool{0: true, 4: true, 5: false, 8: false, 10: false} {
		if got := d.Enabled(ctx, slog.Level(-v)); got != want {
			t.Errorf("V(%d) enabled: %v, want %v", v, got, want)
		}
	}
	var out bytes.Buffer
	quiet := logging.Demote(logging.NewConsole(&out, slog.LevelInfo))
	if quiet.Enabled(ctx, slog.LevelError) {
		t.Error("logged without -v")
	}
	// klog passes errors to Handle without a call of Enabled.
	if err := quiet.Handle(ctx, slog.NewRecord(time.Now(), slog.LevelError, "an error", 0)); err != nil || out.Len() > 0 {
		t.Errorf("logged without -v: %s (%v)", &out, err)
	}
}
