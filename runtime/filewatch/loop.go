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
	settle time.Duration // how long it must be quiet after an event; see pace
	poll   time.Duration // between looks without an event
	// concerns reports whether an event of this path is a reason to look. Others are
	// ignored: they do not delay a look either.
	concerns func(path string) bool
	// look is told whether it is such a look without an event, and reports whether
	// it has to look again once it has been quiet. Its error ends the loop.
	look      func(polled bool) (again bool, err error)
	onPolling func(error) // told once why changes are seen by polling only

	events   <-chan fsnotify.Event // nil where there are none
	errors   <-chan error
	add      func(dir string) error // asks for the events of a folder; nil where there are none
	reported bool                   // late was
}

// run looks until ctx ends.
func (l *loop) run(ctx context.Context) error {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		l.polls(err)
		return l.watch(ctx)
	}
	defer func() { _ = events.Close() }()
	l.events, l.errors, l.add = events.Events, events.Errors, events.Add
	return l.watch(ctx)
}

// watch is run, with the source of events.
func (l *loop) watch(ctx context.Context) error {
	p := pace{settle: l.settle}
	next := time.NewTimer(l.first)
	defer next.Stop()
	poll := time.NewTicker(l.poll)
	defer poll.Stop()
	for {
		polled := false
		select {
		case <-ctx.Done():
			return nil
		case event := <-l.events:
			if l.concerns(event.Name) {
				p.event(time.Now())
				next.Reset(time.Until(p.at))
			}
			continue
		case <-l.errors: //nolint:errcheck // events were lost: look
			p.event(time.Now())
			next.Reset(time.Until(p.at))
			continue
		case <-poll.C:
			polled = true
		case <-next.C:
			p.looked()
		}
		again, err := l.look(polled)
		if err != nil {
			return err
		}
		if again {
			p.event(time.Now())
			next.Reset(time.Until(p.at))
		}
	}
}

// follow asks for the events of a folder. To ask again does nothing.
func (l *loop) follow(dir string) {
	if l.add == nil {
		return
	}
	if err := l.add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.polls(err)
	}
}

func (l *loop) polls(why error) {
	if !l.reported {
		l.reported = true
		l.onPolling(why)
	}
}
