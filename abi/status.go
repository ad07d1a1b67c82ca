package abi

import "strconv"

// Status is the upper half of what a host function returns. Zero is success, a
// positive number is the API server's HTTP code (the body is its
// metav1.Status), a negative one is the host's own (the body is a StatusBody).
type Status int32

// The host's own statuses. A guest treats a negative number that it does not
// know as StatusInternal.
const (
	StatusOK          Status = 0
	StatusUnsupported Status = -1 // the host does not have this operation
	StatusDenied      Status = -2 // no capability; StatusBody.Rule is what is missing
	StatusBadRequest  Status = -3 // the request cannot be understood
	StatusTooLarge    Status = -4 // request or answer is over a limit
	StatusBudget      Status = -5 // the call has used up what it may use
	StatusCancelled   Status = -6 // the host is stopping, or the run's time is over
	StatusUnavailable Status = -7 // the API server cannot be reached; try again later
	StatusNotSynced   Status = -8 // the cache is not filled yet
	StatusInternal    Status = -9 // a fault of the host
)

var statusNames = map[Status]string{
	StatusOK: "OK", StatusUnsupported: "UNSUPPORTED", StatusDenied: "DENIED", StatusBadRequest: "BAD_REQUEST",
	StatusTooLarge: "TOO_LARGE", StatusBudget: "BUDGET", StatusCancelled: "CANCELLED",
	StatusUnavailable: "UNAVAILABLE", StatusNotSynced: "NOT_SYNCED", StatusInternal: "INTERNAL",
}

// String returns the status's name in ABI.md, or the number of an HTTP code.
func (s Status) String() string {
	if n, ok := statusNames[s]; ok {
		return n
	}
	return strconv.Itoa(int(s))
}

// StatusBody is the answer's body where the status is negative.
type StatusBody struct {
	// Code is the status once more, so that the body stands alone.
	Code Status `msgpack:"code"`
	// Reason is a CamelCase word for programs.
	Reason string `msgpack:"reason"`
	// Message is for people, and says what to do next.
	Message string `msgpack:"message"`
	// Rule is, for StatusDenied, the capability that is missing.
	Rule *Capability `msgpack:"rule,omitempty"`
}

// Response is what an operation answers: a status and one msgpack value.
type Response struct {
	Status Status
	Body   []byte
}

// PackResult packs a status and a length as a host function returns them. As a
// worked example, PackResult(404, 16) is 404<<32 | 16 = 1735166787600, and
// PackResult(StatusDenied, 16) is -2<<32 | 16 = -8589934576.
func PackResult(s Status, length uint32) uint64 {
	return uint64(uint32(s))<<32 | uint64(length) //nolint:gosec // the bits of a negative status are wanted
}

// UnpackPointer returns the place of a guest's result, packed as ptr<<32 | len.
func UnpackPointer(v uint64) (ptr, length uint32) { return uint32(v >> 32), uint32(v) }
