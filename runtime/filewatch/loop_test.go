package filewatch

import (
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestLoop_LateIsToldOnce, however many folders cannot be followed, and however
// often that is tried.
func TestLoop_LateIsToldOnce(t *testing.T) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Close(); err != nil { // it follows nothing any more
		t.Fatal(err)
	}
	told := 0
	l := &loop{events: events, late: func(error) { told++ }}
	for range 3 {
		l.follow(t.TempDir())
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}
