package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/shell"
	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// ServeGuests is a guest process: it has code and instances for the process of
// an Isolation, on connections that accept returns, until that fails. It needs
// nothing but these, and the directory of compiled code, to read. Guests compute
// on so many CPUs at once.
func ServeGuests(accept func() (GuestConn, error), cpus int) error {
	return newGuestServer(cpus).serveAll(accept)
}

func newGuestServer(cpus int) *guestServer {
	return &guestServer{codes: map[uint64]*code{}, modules: map[string]*guestModule{}, cpus: NewCPUScheduler(cpus), made: func(GuestConn, *instance) {}}
}

func (s *guestServer) serveAll(accept func() (GuestConn, error)) error {
	for {
		conn, err := accept()
		if err != nil {
			return err
		}
		go s.serve(conn)
	}
}

// guestServer is a guest process.
type guestServer struct {
	cpus *CPUScheduler
	made func(GuestConn, *instance) // for tests: an instance is about to be made

	mu      sync.Mutex
	codes   map[uint64]*code        // guarded by mu
	modules map[string]*guestModule // guarded by mu
}

// guestModule is what the instances of a module share.
type guestModule struct {
	*shared

	instances int // guarded by guestServer.mu
}

// serve serves one connection: what it is about lives as long.
func (s *guestServer) serve(conn GuestConn) {
	defer func() { _ = conn.Close() }() // the host has seen all that there is
	c := &frameConn{conn: conn, limit: maxLoad}
	kind, f, err := c.read()
	if err != nil {
		return
	}
	switch kind {
	case frameLoad:
		s.serveCode(c, &f)
	case frameNew:
		s.serveInstance(c, &f)
	default: // the host is trusted, so this is a fault of ours
		_ = c.begin(frameDone).text(fmt.Sprintf("BUG: unexpected message %d", kind)).send()
	}
}

// serveCode has code until the connection ends.
func (s *guestServer) serveCode(c *frameConn, f *fields) {
	var job loadJob
	err := json.Unmarshal([]byte(f.text(maxText)), &job)
	var code *code
	if err == nil {
		code, err = job.load(context.Background(), f.rest())
	}
	if err != nil {
		_ = c.begin(frameDone).text(shorten(err.Error(), maxText)).send()
		return
	}
	c.in = nil // it can have megabytes
	s.mu.Lock()
	s.codes[job.ID] = code
	s.mu.Unlock()
	if c.begin(frameDone).text("").send() == nil {
		_, _, _ = c.read() // until the end
	}
	s.mu.Lock()
	delete(s.codes, job.ID)
	s.mu.Unlock()
	_ = code.release(context.Background()) // the memory is given back, or the process ends soon
}

// load makes code, from the directory where it is there already.
func (j *loadJob) load(ctx context.Context, form []byte) (_ *code, err error) {
	m, err := parseForm(form)
	if err != nil {
		return nil, err
	}
	c := &code{files: m.files, maxStack: j.MaxStack, globals: -1, startSize: j.StartSize}
	c.refs.Store(1)
	defer func() {
		if err != nil {
			_ = c.release(ctx)
		}
	}()
	if !j.fromCache(ctx, c, form) {
		c.newRuntime(ctx, nil)
		if c.compiled, err = compileSafely(vm.WithWorkers(ctx, j.Workers), c.runtime, form); err != nil {
			return nil, err
		}
	}
	return c, c.linkImports(ctx, m.imports)
}

// fromCache takes code from the directory, if it is there.
func (j *loadJob) fromCache(ctx context.Context, c *code, form []byte) bool {
	if j.Dir == "" {
		return false
	}
	hollow, err := shell.Of(form)
	return err == nil && c.fromCache(ctx, j.Dir, hollow) == nil
}

// serveInstance has an instance until the connection ends or a call fails.
func (s *guestServer) serveInstance(c *frameConn, f *fields) {
	wait, level := time.Duration(f.i64()), f.u8()
	var job newJob
	if err := json.Unmarshal([]byte(f.text(maxText)), &job); err != nil {
		return
	}
	c.limit = maxFrame
	g, release := s.revision(&job)
	if g == nil { // it was unloaded meanwhile
		return
	}
	defer release()
	frames := make(chan frame)
	in := &instance{gen: g}
	in.upstream = &upstream{in: in, conn: c, frames: frames}
	defer in.close(context.Background())
	s.made(c.conn, in)
	if err := in.prepare(context.Background()); err != nil {
		_ = sendDone(in, 0, nil, err)
		return
	}
	go in.follow(c, frames)
	in.setLevel(level)
	if in.serveCall(wait, in.load, func() ([]byte, uint64, error) { return nil, 0, nil }) != nil {
		return
	}
	for f := range frames {
		if f.kind != frameEnter || in.serveEntry(f) != nil {
			return
		}
	}
}

// follow reads what the host sends. The end of the connection interrupts what
// runs.
func (in *instance) follow(c *frameConn, frames chan<- frame) {
	defer close(frames)
	for {
		kind, f, err := c.read()
		if err != nil {
			in.interrupt.fire(byCaller)
			return
		}
		select {
		case frames <- frame{kind, f}:
		case <-in.interrupt.done: // nobody takes it
			return
		}
	}
}

// serveEntry calls an entry.
func (in *instance) serveEntry(f frame) error {
	wait, level, export, a := time.Duration(f.i64()), f.u8(), f.text(maxOpName), access(f.u8())
	msg := message{first: f.rest()}
	in.setLevel(level)
	var v uint64
	return in.serveCall(wait, func() (err error) {
		if export == abi.ExportDescribe {
			v, err = in.callDescribe()
		} else {
			v, err = in.exchange(entry{name: export, access: a}, msg)
		}
		return err
	}, func() (b []byte, _ uint64, err error) {
		if export != abi.ExportFilter { // whose number is the answer
			b, err = in.result(v)
		}
		return b, v, err
	})
}

// serveCall runs the guest and tells the host what has come of it. Any error
// means that the instance must be closed.
func (in *instance) serveCall(wait time.Duration, call func() error, read func() ([]byte, uint64, error)) error {
	in.upstream.shown = 0
	var v uint64
	var result []byte
	startedAt := time.Now()
	err := in.bounded(context.Background(), wait, startedAt, func() (err error) {
		if err = call(); err == nil {
			result, v, err = read()
		}
		return err
	})
	in.run.pause(time.Since(startedAt))
	if err == nil {
		err = in.interrupt.Err()
	}
	if sent := sendDone(in, v, result, err); err == nil {
		err = sent
	}
	in.run = run{}
	return err
}

func sendDone(in *instance, v uint64, result []byte, err error) error {
	d := done{
		value: v, result: result, spent: in.spent, waited: int64(in.run.waited), guest: int64(in.run.guest), idle: int64(in.run.idle), dropped: int64(in.output.dropped), sources: byte(in.run.sources), late: in.interrupt.cause.Load() == byDeadline,
		refused: in.linear.refused != nil && !errors.Is(in.linear.refused, ErrMemoryBudget),
	}
	if in.memory != nil {
		d.size = in.size()
	}
	if d.describe(err); err != nil {
		d.excerpt, d.result = shorten(in.output.excerpt(), 2*(maxHead+maxTail)), nil
	}
	return d.write(in.upstream.conn.begin(frameDone)).send()
}

// revision is that of a new instance, with a hold on its code; nil where the code
// is not there.
func (s *guestServer) revision(job *newJob) (_ *revision, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := s.codes[job.Code]
	if code == nil {
		return nil, nil
	}
	code.retain()
	m := s.modules[job.Module]
	if m == nil {
		m = &guestModule{shared: &shared{}}
		s.modules[job.Module] = m
	}
	m.instances++
	g := &revision{code: code, name: job.Program, limits: job.Limits, shared: m.shared, all: map[*instance]struct{}{}}
	g.cfg = Config{CPUScheduler: s.cpus, FuelRate: job.FuelRate, slice: job.Slice}.withDefaults()
	if job.Metric {
		g.cfg.Metric = func(int32, string, float64) abi.Status { return abi.StatusUnsupported } // upstream has the real one
	}
	g.log = slog.New(&levelHandler{slog.DiscardHandler, new(atomic.Int32)})
	return g, func() {
		s.mu.Lock()
		if m.instances--; m.instances == 0 {
			delete(s.modules, job.Module)
		}
		s.mu.Unlock()
		_ = code.release(context.Background()) // as in serveCode
	}
}

// levelHandler says which levels the host keeps.
type levelHandler struct {
	slog.Handler

	level *atomic.Int32
}

// Enabled implements slog.Handler.
func (h *levelHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.Level(h.level.Load())
}

// setLevel sets the lowest level that the host keeps.
func (in *instance) setLevel(level byte) {
	if h, ok := in.gen.log.Handler().(*levelHandler); ok {
		h.level.Store(int32(int8(level))) //nolint:gosec // the bits of an i8
	}
}
