package wasmctl

import (
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/mem"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// guest is one instance of the module: its host, and the memory that it uses
// again in each call. One thread uses it at a time.
type guest struct {
	host       imports.Host
	reconciler *Reconciler

	block   mem.Block // where the host writes requests
	result  []byte    // what the last entry call returned
	request []byte    // the request of the current operation
	answer  mem.Block // the answer of the last operation
	ctx     Context   // the current run
	head    head      // of its object
}

// input is a Request or a Failure, read only as far as its top level.
type input struct {
	id, controller, reason, key, object, caps, failure, kind []byte

	attempt, configGen, deadlineMS, firstFailedMS int64
	stale, dryRun                                 bool
}

// parseInput reads a message; false if it is no map. The host writes the object
// last, so this does not walk through it.
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
		case "attempt":
			in.attempt, _ = wire.ReadInt(it.Value)
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
		}
	}
	return in, wire.TypeOf(msg) == wire.Map && !it.Bad()
}

// reserve is the export buffer: a block for a request of size bytes, or nil.
func (g *guest) reserve(size uint32) []byte {
	if size > wire.MaxBytes {
		return nil
	}
	return g.block.Grow(max(int(size), 1))
}

// call carries out one entry call. The result is good until the next one.
func (g *guest) call(name string, msg []byte) []byte {
	in, ok := parseInput(msg)
	switch {
	case !ok:
		g.result = appendFailed(g.result[:0], Permanent(errMessage))
	case g.reconciler == nil:
		g.result = appendFailed(g.result[:0], Permanent(errNotRegistered))
	case name == entry.ErrorPolicy:
		g.begin(in)
		g.result = g.errorPolicy(g.result[:0])
	default:
		g.begin(in)
		g.result = g.reconcile(g.result[:0])
	}
	return g.result
}

func (g *guest) begin(in input) {
	g.head.read = false
	g.ctx = Context{g: g, in: in, client: Client{g: g}, log: Logger{g: g}}
}

// object is the one of the current run.
func (g *guest) object() Object { return Object{Value{g.ctx.in.object}, &g.head} }

func (g *guest) reconcile(dst []byte) []byte {
	action, err := g.reconciler.Reconcile(&g.ctx, g.object())
	if err != nil {
		return appendFailed(dst, err)
	}
	return appendAction(dst, action)
}

func (g *guest) errorPolicy(dst []byte) []byte {
	if g.reconciler.ErrorPolicy == nil {
		return appendFailed(dst, errNoErrorPolicy)
	}
	return appendAction(dst, g.reconciler.ErrorPolicy(&g.ctx, g.object(), g.ctx.in.failed()))
}

// failed returns what ErrorPolicy is given.
func (in *input) failed() Failure {
	e := Value{in.failure}
	f := Failure{
		Kind: FailureKind(Value{in.kind}.String()), Class: ErrorClass(e.String("class")),
		Message: e.String("message"), Reason: e.String("reason"),
		After:   time.Duration(e.Int("after_ms")) * time.Millisecond,
		Attempt: int(in.attempt),
	}
	if in.firstFailedMS != 0 {
		f.FirstFailed = time.UnixMilli(in.firstFailedMS)
	}
	return f
}

func init() {
	entry.Call = func(host imports.Host, reconciler any, name string, msg []byte) []byte {
		r := reconciler.(Reconciler) //nolint:forcetypeassert // guesttest's one caller passes it
		g := &guest{host: host, reconciler: &r}
		return g.call(name, msg)
	}
	entry.Describe = func(reconciler any) []byte {
		r := reconciler.(Reconciler) //nolint:forcetypeassert // guesttest's one caller passes it
		return describe(&r)
	}
}
