// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/mem"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// guest is one instance of the module: its host, and the memory that each call
// reuses. Only one thread uses it at a time.
type guest struct {
	host       imports.Host
	reconciler *Reconciler
	refused    error // the error of the function given to RegisterFunc

	block   mem.Block // the host writes requests here
	result  []byte    // result of the last entry call
	request []byte    // the request of the current operation
	answer  mem.Block // the answer of the last operation
	ctx     Context   // the current run
	head    head      // head of the object of the run
}

// reserve implements the export buffer. It returns a block for a request of
// size bytes, or nil if the size is over the limit.
func (g *guest) reserve(size uint32) []byte {
	if size > wire.MaxBytes {
		return nil
	}
	return g.block.Grow(max(int(size), 1))
}

// call runs one entry call. The result is valid until the next one.
func (g *guest) call(name string, msg []byte) []byte {
	in, ok := parseInput(msg)
	switch {
	case !ok:
		g.result = appendFailed(g.result[:0], Permanent(errMessage))
	case g.reconciler == nil && g.refused == nil:
		g.result = appendFailed(g.result[:0], Permanent(errNotRegistered))
	case g.reconciler == nil:
		g.result = appendFailed(g.result[:0], Permanent(g.refused))
	default:
		g.begin(in)
		g.result = g.enter(name, g.result[:0])
	}
	return g.result
}

// keep runs the entry call filter. It returns true if the message cannot be
// decoded, because an unneeded event does no harm.
func (g *guest) keep(msg []byte) bool {
	in, ok := parseInput(msg)
	if !ok || g.reconciler == nil {
		return true
	}
	g.begin(in)
	return g.reconciler.Manifest.keeps(&g.ctx, g.ctx.in.watchEvent())
}

func (g *guest) begin(in input) {
	g.head.read = false
	wire.Caps = in.caps
	g.ctx = Context{g: g, in: in, client: Client{g: g}, cache: Cache{g: g}, log: Logger{g: g}}
}

func (g *guest) enter(name string, dst []byte) []byte {
	switch name {
	case entry.ErrorPolicy:
		return g.errorPolicy(dst)
	case entry.Map:
		return g.mapEvent(dst)
	case entry.Configure:
		return g.configure(dst)
	case entry.Validate, entry.Default:
		return g.judge(dst)
	case entry.Convert:
		return g.convert(dst)
	}
	run := g.reconciler.Reconcile
	if name == entry.Finalize {
		run = g.reconciler.Finalize
	}
	if run == nil {
		return appendFailed(dst, errNoFunction)
	}
	action, err := run(&g.ctx, g.object())
	return appendResult(dst, action, err)
}

// object returns the object of the current run.
func (g *guest) object() Object { return Object{Value: Value{g.ctx.in.object}, head: &g.head} }

func (g *guest) errorPolicy(dst []byte) []byte {
	if g.reconciler.ErrorPolicy == nil {
		return appendFailed(dst, errNoFunction)
	}
	action := g.reconciler.ErrorPolicy(&g.ctx, g.object(), g.ctx.in.failed())
	if action.declared != nil {
		return appendFailed(dst, errPolicyDeclares)
	}
	return appendResult(dst, action, nil)
}

// mapEvent writes the keys that an event concerns: {keys} or {error}.
func (g *guest) mapEvent(dst []byte) []byte {
	e := g.ctx.in.watchEvent()
	mapper := g.reconciler.Manifest.mapper(e.Group, e.Kind)
	if mapper == nil {
		return appendFailed(dst, errNoFunction)
	}
	keys, err := mapper(&g.ctx, e)
	if err != nil {
		return appendFailed(dst, err)
	}
	// Skip keys that no object can have: mappers often read keys from labels
	// and annotations, which users write.
	list := make([]ObjectKey, 0, len(keys))
	for _, k := range keys {
		if k.valid() {
			list = append(list, k)
		}
	}
	if len(list) > maxKeys {
		return appendFailed(dst, Permanent(errTooManyKeys))
	}
	b := wire.NewBuilder(dst)
	if err := b.Value("keys", list); err != nil {
		return appendFailed(dst, Permanent(err))
	}
	return b.End()
}

// configure passes the settings to Reconciler.Configure.
func (g *guest) configure(dst []byte) []byte {
	if g.reconciler.Configure == nil {
		return dst
	}
	if err := g.reconciler.Configure(&g.ctx, Value{g.ctx.in.config}.StringMap()); err != nil {
		return appendFailed(dst, err)
	}
	return dst
}

func init() {
	entry.Call = func(host imports.Host, reconciler any, name string, msg []byte) []byte {
		return newGuest(host, reconciler).call(name, msg)
	}
	entry.Keep = func(host imports.Host, reconciler any, msg []byte) bool {
		return newGuest(host, reconciler).keep(msg)
	}
	entry.Describe = func(reconciler any) []byte { return describe(newGuest(nil, reconciler).reconciler) }
	entry.Client = func(host imports.Host) any { return &Client{g: &guest{host: host}} }
	entry.Problem = func(reconciler any) string { return newGuest(nil, reconciler).reconciler.problem() }
}

func newGuest(host imports.Host, reconciler any) *guest {
	r := reconciler.(Reconciler) //nolint:forcetypeassert // the only callers, in guesttest, pass a Reconciler
	return &guest{host: host, reconciler: &r}
}
