// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"math"
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// input is a decoded Request, Failure, Event or Settings. Only the top level is
// decoded.
type input struct {
	id, controller, reason, reasons, key, object, caps []byte

	failure, kind              []byte // of a Failure
	watch, eventType, old, new []byte // of an Event
	config                     []byte // of Settings
	judged                     judged

	attempt, reasonsDropped              int
	configGen, deadlineMS, firstFailedMS int64
	stale, dryRun                        bool
}

// judged has the other parts of an Admission and of a Conversion.
type judged struct{ webhook, operation, target, requested, options, user, to, objects []byte }

func (j *judged) set(key string, value []byte) {
	switch key {
	case "webhook":
		j.webhook = value
	case "operation":
		j.operation = value
	case "target":
		j.target = value
	case "requested":
		j.requested = value
	case "options":
		j.options = value
	case "user":
		j.user = value
	case "to":
		j.to = value
	case "objects":
		j.objects = value
	}
}

// parseInput reads a message, and returns false if it is not a map. It does not
// scan the object, which the host writes last.
func parseInput(msg []byte) (in input, ok bool) {
	it := wire.Walk(msg)
	for it.Next() {
		switch string(it.Key) {
		case "id":
			in.id = it.Value
		case "controller":
			in.controller = it.Value
		case "reason":
			in.reason = it.Value
		case "reasons":
			in.reasons = it.Value
		case "reasons_dropped":
			in.reasonsDropped = readCount(it.Value)
		case "key":
			in.key = it.Value
		case "object":
			in.object = it.Value
		case "caps":
			in.caps = it.Value
		case "error":
			in.failure = it.Value
		case "kind":
			in.kind = it.Value
		case "watch":
			in.watch = it.Value
		case "type":
			in.eventType = it.Value
		case "old":
			in.old = it.Value
		case "new":
			in.new = it.Value
		case "config":
			in.config = it.Value
		case "attempt":
			in.attempt = readCount(it.Value)
		case "config_gen":
			in.configGen, _ = wire.ReadInt(it.Value)
		case "deadline_ms":
			in.deadlineMS, _ = wire.ReadInt(it.Value)
		case "first_failed_ms":
			in.firstFailedMS, _ = wire.ReadInt(it.Value)
		case "stale":
			in.stale, _ = wire.ReadBool(it.Value)
		case "dry_run":
			in.dryRun, _ = wire.ReadBool(it.Value)
		default:
			in.judged.set(string(it.Key), it.Value)
		}
	}
	return in, wire.TypeOf(msg) == wire.Map && !it.Bad()
}

// readCount returns an integer as an int, at most math.MaxInt, which is 32 bits
// with TinyGo.
func readCount(v []byte) int {
	n, _ := wire.ReadInt(v)
	return int(min(n, math.MaxInt))
}

// failed returns the Failure that ErrorPolicy receives.
func (in *input) failed() Failure {
	e := Value{in.failure}
	f := Failure{
		Kind: FailureKind(Value{in.kind}.String()), Class: ErrorClass(e.String("class")),
		Message: e.String("message"), Reason: e.String("reason"),
		After:   time.Duration(e.Int("after_ms")) * time.Millisecond,
		Attempt: in.attempt,
	}
	if in.firstFailedMS != 0 {
		f.FirstFailed = time.UnixMilli(in.firstFailedMS)
	}
	return f
}
