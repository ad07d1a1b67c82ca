// SPDX-License-Identifier: Apache-2.0

package abi

import "strconv"

// Status is the upper half of the result of a host function. Zero means success, a positive number is the API server's HTTP code (the body
// is its metav1.Status), and a negative one is a code of the host itself (the body is a StatusBody).
type Status int32

// The host's own statuses. A guest treats an unknown negative number as StatusInternal.
const (
	StatusOK          Status = 0
	StatusUnsupported Status = -1 // the host does not have this operation
	StatusDenied      Status = -2 // no capability; StatusBody.Rule is the missing one
	StatusBadRequest  Status = -3 // the request is invalid
	StatusTooLarge    Status = -4 // the request or the response exceeds a limit
	StatusBudget      Status = -5 // the call has used up its budget
	StatusCancelled   Status = -6 // the host is stopping, or the run's time is over
	StatusUnavailable Status = -7 // the API server cannot be reached; try again later
	StatusNotSynced   Status = -8 // the cache is not complete yet
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

// StatusBody is the body of a response with a negative status.
type StatusBody struct {
	// Code repeats the status, so that the body is self-contained.
	Code Status `msgpack:"code"`
	// Reason is a CamelCase word for programs.
	Reason string `msgpack:"reason"`
	// Message is for people, and includes what to do next.
	Message string `msgpack:"message"`
	// Rule is the missing capability, for StatusDenied.
	Rule *Capability `msgpack:"rule,omitempty"`
}

// Response is the response of an operation: a status and one msgpack value.
type Response struct {
	Status Status
	Body   []byte
}

// PackResult packs a status and a length into the result of a host function. For example, PackResult(404, 16) is 404<<32 | 16 =
// 1735166787600, and PackResult(StatusDenied, 16) is -2<<32 | 16 = -8589934576.
func PackResult(s Status, length uint32) uint64 {
	return uint64(uint32(s))<<32 | uint64(length) // the bits of a negative status are intended
}

// UnpackPointer returns the location of a guest's result, packed as ptr<<32 | len.
func UnpackPointer(v uint64) (ptr, length uint32) { return uint32(v >> 32), uint32(v) }
