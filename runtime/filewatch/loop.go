package filewatch

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop looks when the operating system reports a change, and from time to time
// without that.
type loop struct {
	first  time.Duration // until the first look
	settle time.Duration // how long it must be quiet after an event
	poll   time.Duration // between looks without an event
	// look is told whether it is such a look without an event, and reports whether
	// it has to look again once it has been quiet. Its error ends the loop.
	look      func(polled bool) (again bool, err error)
	onPolling func(error) // told once why changes are seen by polling only

	events   *fsnotify.Watcher // its channels are nil where there are no events
	reported bool              // late was
}

// run looks until ctx ends.
func (l *loop) run(ctx context.Context) error {
	var err error
	if l.events, err = fsnotify.NewWatcher(); err != nil {
		l.events = &fsnotify.Watcher{}
		l.polls(err)
	} else {
		defer func() { _ = l.events.Close() }()
	}
	settle := time.NewTimer(l.first)
	defer settle.Stop()
	poll := time.NewTicker(l.poll)
	defer poll.Stop()
	for {
		polled := false
		select {
		case <-ctx.Done():
			return nil
		case <-l.events.Events:
			settle.Reset(l.settle)
			continue
		case <-l.events.Errors: //nolint:errcheck // events were lost: look
			settle.Reset(l.settle)
			continue
		case <-poll.C:
			polled = true
		case <-settle.C:
		}
		again, err := l.look(polled)
		if err != nil {
			return err
		}
		if again {
			settle.Reset(l.settle)
		}
	}
}

// follow asks for the events of a folder. To ask again does nothing.
func (l *loop) follow(dir string) {
	if l.events.Events == nil {
		return
	}
	if err := l.events.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.polls(err)
	}
}

func (l *loop) polls(why error) {
	if !l.reported {
		l.reported = true
		l.onPolling(why)
	}
}
