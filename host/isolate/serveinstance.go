// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/text"
)

// discard is the log of a guest process: lines of guests go to the host.
var discard = slog.New(slog.DiscardHandler)

// unsupported stands for the metrics of the host, which upstream reaches.
func unsupported(int32, string, float64) abi.Status { return abi.StatusUnsupported }

// served is an instance in a guest process.
type served struct {
	core  instance.Core
	local *instance.Local
	host  upstream
}

// serveInstance has an instance until the connection ends or a call fails.
func (s *server) serveInstance(c *frameConn, f *fields) {
	wait, level := time.Duration(f.i64()), f.u8()
	var job newJob
	if err := json.Unmarshal([]byte(f.text(text.MaxError)), &job); err != nil {
		return
	}
	c.limit = maxFrame
	spec, release := s.spec(&job)
	if spec == nil { // the code was unloaded meanwhile
		return
	}
	defer release()
	frames := make(chan frame)
	in := &served{}
	in.local = instance.NewLocal(&in.core, spec.Code, &in.host)
	in.host = upstream{core: &in.core, local: in.local, spec: spec, conn: c, frames: frames, refusals: operation.NewRefusals(spec.Env)}
	in.core.Init(spec, in.local)
	defer in.core.Stop()
	defer in.local.Close(context.Background())
	s.made(c.conn, in.local)
	if err := in.local.Open(context.Background()); err != nil {
		_ = in.sendDone(0, nil, err)
		return
	}
	go in.follow(c, frames)
	if in.serveCall(wait, level, in.local.Start, func() ([]byte, uint64, error) { return nil, 0, nil }) != nil {
		return
	}
	for f := range frames {
		if f.kind != frameEnter || in.serveEntry(f) != nil {
			return
		}
	}
}

// follow reads the frames of the host. The end of the connection interrupts the call that
// runs.
func (in *served) follow(c *frameConn, frames chan<- frame) {
	defer close(frames)
	for {
		kind, f, err := c.read()
		if err != nil {
			in.core.Cancel()
			return
		}
		select {
		case frames <- frame{kind, f}:
		case <-in.core.Interrupt().Done(): // no call takes it anymore
			return
		}
	}
}

// serveEntry calls an entry.
func (in *served) serveEntry(f frame) error {
	wait, level, export, access := time.Duration(f.i64()), f.u8(), f.text(maxOpName), operation.Access(f.u8())
	msg := instance.Message{First: f.rest()}
	var v uint64
	return in.serveCall(wait, level, func() (err error) {
		v, err = in.local.Call(instance.Entry{Name: export, Access: access}, msg)
		return err
	}, func() (b []byte, _ uint64, err error) {
		if export != abi.ExportFilter { // whose value is the answer
			b, err = in.local.Result(v)
		}
		return b, v, err
	})
}

// serveCall runs the guest and sends the result to the host. After any error, the instance
// must be closed.
func (in *served) serveCall(wait time.Duration, level byte, call func() error, read func() ([]byte, uint64, error)) error {
	in.host.beginCall(level)
	var v uint64
	var result []byte
	startedAt := time.Now()
	err := in.core.Bounded(context.Background(), wait, startedAt, func() (err error) {
		if err = call(); err == nil {
			result, v, err = read()
		}
		return err
	})
	in.local.Ended(time.Since(startedAt))
	if err == nil {
		err = in.core.Interrupt().Err()
	}
	if sent := in.sendDone(v, result, err); err == nil {
		err = sent
	}
	in.core.Run = operation.Run{}
	return err
}

func (in *served) sendDone(v uint64, result []byte, err error) error {
	refused := in.local.Refused()
	d := done{
		value: v, result: result, usage: in.core.Usage(), size: in.local.Size(), dropped: int64(in.host.dropped), sources: byte(in.core.Run.Sources),
		late: in.core.WasLate(), refused: refused != nil && !errors.Is(refused, share.ErrMemoryBudget),
	}
	if d.describe(err); err != nil {
		d.excerpt, d.result = text.Ends(in.host.excerpt.String(), operation.MaxExcerpt), nil
	}
	return d.write(in.host.conn.begin(frameDone)).send()
}
