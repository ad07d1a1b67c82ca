// SPDX-License-Identifier: Apache-2.0

// Package events records events (events.k8s.io/v1) for modules and for the host, with client-go's
// recorder: events that differ only in their note become one event with a series.
//
// Events of a guest pass a bounded queue and a limit for each object, so that the guest never waits
// and cannot flood the API server:
//
//	recorder := events.New(events.Config{Sink: sink, Controller: "web", Logger: logger})
//	go recorder.Run(ctx)
//	recorder.Record(event)
package events

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Limits of the API server, in bytes (validation of events.k8s.io/v1).
const (
	MaxReason = 128
	MaxAction = 128
	MaxNote   = 1024

	maxInstance = 128
)

// The end of Run, once its ctx has ended.
const (
	// flushTime is the maximum time to send the events that wait.
	flushTime = 2 * time.Second
	// handOff is the time in which client-go has passed an event to our sink, or added it to a series.
	handOff = 100 * time.Millisecond
	// flushLook is the interval of the checks whether events still wait.
	flushLook = 20 * time.Millisecond
)

// queueSize is the number of events that can wait for Run, as in client-go's broadcaster.
const queueSize = 1000

// Event is one event to be recorded.
type Event struct {
	// Type is corev1.EventTypeNormal or EventTypeWarning.
	Type                 string
	Reason, Action, Note string
	Regarding            corev1.ObjectReference
	// Related is the second object, or nil.
	Related *corev1.ObjectReference
}

// ActionOf returns an action for an event: a verb, and a hash of the note. Kubernetes merges events that
// differ only in their note, and shows the first one. So an event whose note matters needs an action of
// its own.
func ActionOf(verb, note string) string {
	sum := sha256.Sum256([]byte(note))
	return fmt.Sprintf("%s%x", verb, sum[:4])
}

// Counts are the results of the events that were passed to Record.
type Counts struct {
	// Recorded are requests that the API server has accepted. The events of a series share them.
	Recorded uint64
	// Limited were discarded by the limit of their object. Dropped were discarded because the queue
	// was full, or too many events waited for the API server.
	Limited, Dropped uint64
	// Refused are events that the API server has refused.
	Refused uint64
}

// ByResult returns the counts by the name of their result.
func (c Counts) ByResult() map[string]uint64 {
	return map[string]uint64{"recorded": c.Recorded, "limited": c.Limited, "dropped": c.Dropped, "refused": c.Refused}
}

// Config configures a Recorder. Sink and Controller are required.
type Config struct {
	// Sink sends events to the API server.
	Sink clientevents.EventSink
	// Controller is the controller's name. "wasmctl/" and this name is the reporting controller of
	// events.
	Controller string
	// PerNamespace also limits the events about the objects of each namespace, so that the tenants of a
	// cluster cannot crowd out each other's events.
	PerNamespace bool
	// Logger receives the API server's refusals, each reason once. If nil, it is slog's default.
	Logger *slog.Logger
}

// Recorder records events. Any number of goroutines may call Record at any time. Nothing is sent
// unless Run runs.
type Recorder struct {
	config Config
	queue  chan *Event // of pointers, because most queues stay empty
	limit  *limiter

	recorded, limited, dropped, refused atomic.Uint64
}

// New returns a recorder. It starts nothing.
func New(c Config) *Recorder {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Recorder{config: c, queue: make(chan *Event, queueSize), limit: newLimiter(c.PerNamespace)}
}

// Record accepts an event, and reports whether it will probably be recorded. It never waits. A note
// that is too long is cut.
func (r *Recorder) Record(e Event) bool {
	if len(e.Note) > MaxNote {
		e.Note = text.Truncate(e.Note, MaxNote-len("...")) + "..."
	}
	if !r.limit.allows(&e) {
		r.limited.Add(1)
		return false
	}
	select {
	case r.queue <- &e:
		return true
	default:
		r.dropped.Add(1)
		return false
	}
}

// Counts returns the numbers of events by result.
func (r *Recorder) Counts() Counts {
	return Counts{Recorded: r.recorded.Load(), Limited: r.limited.Load(), Dropped: r.dropped.Load(), Refused: r.refused.Load()}
}

// Run records events until ctx ends, sends those that wait by then, for at most flushTime, and returns
// when no request is in flight. Run must be called only once.
func (r *Recorder) Run(ctx context.Context) error {
	first := r.next(ctx)
	if first == nil { // many controllers never record an event, and client-go's broadcaster is large
		return nil
	}
	return r.record(ctx, first)
}

// next waits for the next event. It returns nil once ctx has ended and no event waits.
func (r *Recorder) next(ctx context.Context) *Event {
	select {
	case e := <-r.queue:
		return e
	case <-ctx.Done():
	}
	select {
	case e := <-r.queue:
		return e
	default:
		return nil
	}
}

// record records an event and the following ones, until stop ends.
func (r *Recorder) record(stop context.Context, e *Event) error {
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(stop), klog.Logger{})) // our sink logs
	defer cancel()
	sink := &sink{Recorder: r, pending: map[string]int{}, logged: map[string]bool{}, slots: make(chan struct{}, maxAtOnce)}
	broadcaster := clientevents.NewBroadcaster(sink)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		broadcaster.Shutdown()
		return fmt.Errorf("events: %w", err)
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, reportingController(r.config.Controller)).WithLogger(klog.Logger{})
	var last time.Time // of the last event
	for ; e != nil; e = r.next(stop) {
		var related k8sruntime.Object
		if e.Related != nil {
			related = e.Related
		}
		recorder.Eventf(&e.Regarding, related, e.Type, e.Reason, e.Action, "%s", e.Note)
		last = time.Now()
	}
	sink.flush(last)
	cancel()
	broadcaster.Shutdown()
	for range cap(sink.slots) { // no request starts from now on
		sink.slots <- struct{}{}
	}
	return nil
}

// reportingController returns the name under which events are reported: a qualified name whose
// second part has at most 63 bytes of letters, digits, "-", "_" and ".", and begins and ends with a
// letter or digit. ReportingInstance, which appends the host's name, must fit too.
func reportingController(controller string) string {
	const limit = 50
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			return c
		}
		return '-'
	}, controller)
	name = strings.Trim(name[:min(len(name), limit)], "-_.")
	name = cmp.Or(name, "controller")
	return "wasmctl/" + name
}

// fit makes an event valid if client-go did not: the host's name may be long.
func fit(e *eventsv1.Event) {
	if len(e.ReportingInstance) > maxInstance {
		e.ReportingInstance = e.ReportingInstance[:maxInstance]
	}
}
