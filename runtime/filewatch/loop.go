// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop looks when the operating system reports a change, and periodically.
type loop struct {
	first  time.Duration // until the first look
	settle time.Duration // quiet time after an event; see pace
	poll   time.Duration // between looks without an event
	// concerns reports whether an event of this path is relevant. Other events are ignored, and do not delay a look.
	concerns func(path string) bool
	// look is told whether it is a periodic look, and reports whether it must be called again after a quiet time. Its error ends the loop.
	look      func(polled bool) (again bool, err error)
	onPolling func(error) // called once if changes are detected only by polling

	events   <-chan fsnotify.Event // nil if there are none
	errors   <-chan error
	add      func(dir string) error // subscribes to events of a folder; nil if there are none
	reported bool                   // onPolling was called
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

// watch implements run, with the source of events.
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
		case <-l.errors: //nolint:errcheck // events were lost: check the file
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

// follow subscribes to events of a folder. Repeated calls have no effect.
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
