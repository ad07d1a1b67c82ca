// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// eventsKind is the kind of the objects that event_record creates.
var eventsKind = kinds.Kind{Group: eventsv1.GroupName, Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}

// defaultAction is the action of an event without one.
const defaultAction = "Reconcile"

// nilValue is msgpack's nil, the answer of an operation without a result.
var nilValue = []byte{0xc0}

// Run records the events of event_record until ctx ends. Without it, they are queued, and discarded
// beyond a limit. Nothing else of an API needs it. It must be called only once.
func (a *API) Run(ctx context.Context) error { return a.events.Run(ctx) }

// EventCounts returns the results of event_record so far.
func (a *API) EventCounts() events.Counts { return a.events.Counts() }

// recordEvent serves event_record. A discarded event is not an error of the guest: it is counted.
func (a *API) recordEvent(ctx context.Context, req []byte) abi.Response {
	r, unknown, err := abi.DecodeRequest[abi.EventRequest](req)
	if err != nil {
		return refuse(abi.StatusBadRequest, fmt.Sprintf("request of %s: %v", abi.OpEventRecord, err))
	}
	a.report(abi.OpEventRecord, unknown)
	e, err := a.eventOf(ctx, &r)
	if err != nil {
		return refuse(abi.StatusBadRequest, err.Error())
	}
	e.Note = a.cfg.Secrets.Text(e.Note)
	namespace := e.Regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // client-go uses it for events of cluster-scoped objects
	}
	where := Attributes{Group: eventsKind.Group, Resource: eventsKind.Resource, Namespace: namespace}
	about := &request{op: abi.OpEventRecord, kind: eventsKind, key: abi.Key{Namespace: namespace}}
	if denied := a.cfg.Policy.check(where, VerbCreate, VerbPatch); denied != nil {
		a.deny(ctx, about, denied)
		return denied.response()
	}
	if a.dry == DryRunNone {
		a.events.Record(*e)
	}
	a.reportEvent(ctx, about, e)
	return abi.Response{Body: nilValue}
}

// reportEvent notifies the observer of an event.
func (a *API) reportEvent(ctx context.Context, r *request, e *events.Event) {
	if a.cfg.Observer == nil {
		return
	}
	r.DryRun = a.dry != DryRunNone
	reported := r.exchanged(nil)
	reported.Event = e
	a.cfg.Observer(ctx, reported)
}

// eventOf checks a request. Errors are badRequest.
func (a *API) eventOf(ctx context.Context, r *abi.EventRequest) (*events.Event, error) {
	e := &events.Event{Type: r.Type, Reason: r.Reason, Action: r.Action, Note: r.Note}
	if e.Type == "" {
		e.Type = corev1.EventTypeNormal
	}
	if e.Action == "" {
		e.Action = defaultAction
	}
	switch {
	case e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning:
		return nil, badf("type: %q is neither %s nor %s", shorten(e.Type), corev1.EventTypeNormal, corev1.EventTypeWarning)
	case e.Reason == "":
		return nil, badf("reason is needed by %s", abi.OpEventRecord)
	case len(e.Reason) > events.MaxReason:
		return nil, badf("reason: has %d bytes, the limit is %d", len(e.Reason), events.MaxReason)
	case len(e.Action) > events.MaxAction:
		return nil, badf("action: has %d bytes, the limit is %d", len(e.Action), events.MaxAction)
	}
	regarding, err := a.referenceOf(ctx, "regarding", r.Regarding)
	if err != nil {
		return nil, err
	}
	e.Regarding = *regarding
	if r.Related != nil {
		if e.Related, err = a.referenceOf(ctx, "related", r.Related); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// referenceOf converts the object of a request to a reference. If nil, the object is the reconciled
// one. The reference has no resourceVersion, so that the events of all versions of the object form
// one series. If it names the reconciled object without a UID, it gets that of the run.
func (a *API) referenceOf(ctx context.Context, key string, o *abi.EventObject) (*corev1.ObjectReference, error) {
	if o == nil {
		run := abi.RunFrom(ctx)
		if run == nil || run.Object == nil {
			return nil, badf("%s is needed: the object that is reconciled is gone", key)
		}
		p, err := unpack(run.Object)
		if err != nil {
			return nil, err
		}
		o = &abi.EventObject{APIVersion: p.APIVersion, Kind: p.Kind, Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID}
	}
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil || gv.Version == "" || o.Kind == "" || o.Name == "" {
		return nil, badf("%s: apiVersion, kind and name are needed, and for a namespaced object its namespace", key)
	}
	for _, segment := range []string{o.Name, o.Namespace} {
		if msgs := rest.IsValidPathSegmentName(segment); len(msgs) > 0 {
			return nil, badf("%s: %q %s", key, shorten(segment), msgs[0])
		}
	}
	if run := abi.RunFrom(ctx); run != nil && o.UID == "" && gv.Group == a.cfg.Reconciled.Group && o.Kind == a.cfg.Reconciled.Kind &&
		(abi.Key{Namespace: o.Namespace, Name: o.Name}) == run.Key {
		named := *o
		named.UID = versionIn(run.Object).UID
		o = &named
	}
	return &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}, nil
}

// eventSink sends events through the host's client while the gate is open.
type eventSink struct {
	clientevents.EventSinkImpl

	gate Gate
}

// NewRecorder returns a Recorder that sends events through a client while a gate is open. If the gate is
// nil, it is always open. NewRecorder sets the Sink of the Config.
func NewRecorder(c *Client, gate Gate, config events.Config) (*events.Recorder, error) {
	rc := rest.CopyConfig(c.config)
	rc.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	typed, err := typedeventsv1.NewForConfigAndClient(rc, c.rest.Client)
	if err != nil {
		return nil, fmt.Errorf("api server[%s]: events: %w", c.host, err)
	}
	config.Sink = &eventSink{clientevents.EventSinkImpl{Interface: typed}, gate}
	return events.New(config), nil
}

// Create implements EventSink.
func (s *eventSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.gated(ctx, func(ctx context.Context) (*eventsv1.Event, error) { return s.EventSinkImpl.Create(ctx, e) })
}

// Patch implements EventSink.
func (s *eventSink) Patch(ctx context.Context, e *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.gated(ctx, func(ctx context.Context) (*eventsv1.Event, error) { return s.EventSinkImpl.Patch(ctx, e, data) })
}

func (s *eventSink) gated(ctx context.Context, do func(context.Context) (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	open, done, err := enter(ctx, s.gate)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error()) // as a Status, so that client-go does not retry
	}
	defer done()
	return do(open)
}
