package apisim

import "time"

// Verb is the kind of a request.
type Verb string

// The verbs.
const (
	List   Verb = "list"
	Watch  Verb = "watch"  // from a resourceVersion
	Stream Verb = "stream" // a watch that begins with the list
)

// Request describes a request for its Plan.
type Request struct {
	Verb Verb
	// Resource is the name of the resource, such as "widgets".
	Resource  string
	Namespace string
	// Selector is the label selector that was sent.
	Selector string
	// Version is the requested resourceVersion.
	Version string
	// Continue means that it requests a further page.
	Continue bool
	// Number counts the requests with the same resource, namespace and selector, from 1.
	Number int
}

// Plan determines the response to one request. The zero value means a prompt and correct response.
type Plan struct {
	// Delay is the time before the response.
	Delay time.Duration
	// Err, if not nil, is returned to the client instead of a response.
	Err error
	// Code, if not 0, is the HTTP status of an error response: 403, 404, 410, 429, 500...
	Code int
	// RetryAfter is the Retry-After of an error response, in whole seconds; 0 means none.
	RetryAfter int

	// Lag is how many versions a list of any age (resourceVersion 0) is out of date.
	Lag int64
	// PageSize is the maximum number of objects of a page; 0 means as requested.
	PageSize int

	// Latency is the delay of each event of a watch.
	Latency time.Duration
	// Twice makes every Twice-th event be sent a second time; 0 means none.
	Twice int
	// End is how a watch ends: after EndAfter, or after EndEvents events, if these are not 0.
	End       End
	EndAfter  time.Duration
	EndEvents int
}

// End is how a watch ends.
type End uint8

// The ends of a watch.
const (
	// InOrder ends the response normally.
	InOrder End = iota
	// Reset resets the connection.
	Reset
	// Cut ends the response in the middle of an event.
	Cut
	// Expired sends an event with status 410.
	Expired
	// Failed sends an event with status 500.
	Failed
	// Stalled does not end the watch, but sends nothing from then on.
	Stalled
)
