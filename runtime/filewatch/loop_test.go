package filewatch

import (
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestLoop_PollingIsReportedOnce, however many folders cannot be followed, and however
// often that is tried.
func TestLoop_PollingIsReportedOnce(t *testing.T) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Close(); err != nil { // it follows nothing any longer
		t.Fatal(err)
	}
	reported := 0
	l := &loop{events: events, onPolling: func(error) { reported++ }}
	for range 3 {
		l.follow(t.TempDir())
	}
	if reported != 1 {
		t.Errorf("told %d times, want once", reported)
	}
}
