package apisim

import "time"

// Verb is what a request asks for.
type Verb string

// The verbs.
const (
	List   Verb = "list"
	Watch  Verb = "watch"  // from a resourceVersion on
	Stream Verb = "stream" // a watch that begins with the list
)

// Request is a request as a Plan is made for it.
type Request struct {
	Verb Verb
	// Resource is the name of the resource, "widgets".
	Resource  string
	Namespace string
	// Selector is the label selector as it was sent.
	Selector string
	// Version is the resourceVersion that was asked for.
	Version string
	// Continue says that it asks for a further page.
	Continue bool
	// Number counts the requests with the same resource, namespace and selector,
	// from 1.
	Number int
}

// Plan is what becomes of one request. The zero value is a quick and true
// answer.
type Plan struct {
	// Delay passes before the answer.
	Delay time.Duration
	// Err, if not nil, is what the client gets in place of an answer.
	Err error
	// Code, if not 0, is the HTTP status of a refusal: 403, 404, 410, 429, 500...
	Code int
	// RetryAfter is what a refusal asks for, in whole seconds; 0 does not ask.
	RetryAfter int

	// Lag is how many versions a list that may be of any age (resourceVersion 0)
	// is behind.
	Lag int64
	// PageSize is how many objects a page has at most; 0 does as the client asks.
	PageSize int

	// Latency is how late each event of a watch is.
	Latency time.Duration
	// Twice sends every so manieth event a second time; 0 none.
	Twice int
	// End says how a watch ends: after EndAfter, or after EndEvents events, if
	// these are not 0.
	End       End
	EndAfter  time.Duration
	EndEvents int
}

// End is how a watch ends.
type End uint8

// The ends of a watch.
const (
	// InOrder is the end of the answer.
	InOrder End = iota
	// Reset is a connection that is reset.
	Reset
	// Cut is the end in the middle of an event.
	Cut
	// Expired is an event that says 410.
	Expired
	// Failed is an event that says 500.
	Failed
	// Stalled is no end: nothing comes any longer, whatever happens.
	Stalled
)
