// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// hostile is an Isolation, and its only process, which serves each connection with a script.
type hostile struct {
	serve func(c *frameConn)

	mu    sync.Mutex
	why   error           // of its end; guarded by mu
	conns []*net.UnixConn // guarded by mu
}

func (h *hostile) Process(context.Context) (Process, error) { return h, nil }

func (h *hostile) Connect() (Conn, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		ends[i] = c.(*net.UnixConn)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, ends[1])
	go h.serve(&frameConn{conn: ends[1], limit: maxLoad})
	return ends[0], nil
}

func (h *hostile) Kill(reason error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why == nil {
		h.why = fmt.Errorf("killed: %w", reason)
		for _, c := range h.conns {
			_ = c.Close()
		}
	}
	return h.why
}

func (h *hostile) Ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

func (h *hostile) Dir() string     { return "" }
func (h *hostile) Release()        {}
func (h *hostile) Overhead() int64 { return 0 }
func (h *hostile) Stats() Stats    { return Stats{} }

// hostileProcess loads code and makes instances correctly, and then answers each call with
// the script.
func hostileProcess(script func(c *frameConn)) *hostile {
	return &hostile{serve: func(c *frameConn) {
		for {
			kind, _, err := c.read()
			switch {
			case err != nil:
				return
			case kind == frameLoad:
				_ = c.begin(frameDone).text("").send()
			case kind == frameNew:
				_ = (&done{}).write(c.begin(frameDone)).send()
			case kind == frameEnter:
				script(c)
			}
		}
	}}
}

// open makes an instance in a process.
func open(t *testing.T, process *hostile, configured share.Limits) (*instance.Instance, error) {
	t.Helper()
	m, problems := load.Read(wasm.Empty, load.Checks{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	log := slog.New(slog.DiscardHandler)
	c := load.Compiler{Name: "m", Log: log, Limits: configured, Link: instance.HostFunc, Isolated: true, Workers: 1}
	code, err := c.Compile(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	limits, _ := configured.For(nil)
	spec := &instance.Spec{
		Env: &operation.Env{
			Name: "m", Limits: limits, Log: log, Secrets: &redact.Values{}, Share: &share.Module{}, Module: &operation.Module{}, Account: share.NewAccount(nil, "", share.Operations),
		},
		Code: code, All: instance.NewSet(1), Clock: operation.Clock{}.WithDefaults(time.Now()),
	}
	isolated := NewCode(process, code, 1, nil)
	in, err := isolated.Maker(spec).New(t.Context(), operation.NewSettings(1, nil), true)
	t.Cleanup(func() {
		if in != nil {
			in.Close(context.Background())
		}
		_ = isolated.Close(context.Background())
	})
	return in, err
}

// run calls an entry of an instance.
func run(t *testing.T, in *instance.Instance) error {
	t.Helper()
	return in.Enter(t.Context(), in.Spec.Entry(abi.ExportReconcile), instance.Message{}, func(v uint64) error {
		_, err := in.Result(v)
		return err
	})
}

// callHostile runs a guest of a hostile process once.
func callHostile(t *testing.T, limits share.Limits, script func(c *frameConn)) *abi.CallError {
	t.Helper()
	process := hostileProcess(script)
	in, err := open(t, process, limits)
	if err != nil {
		t.Fatal(err)
	}
	var ce *abi.CallError
	if err = run(t, in); !errors.As(err, &ce) {
		t.Fatalf("got %v, want a CallError", err)
	}
	if process.Ended() == nil {
		t.Error("the process lives on")
	}
	return ce
}

// What a guest process says is checked: one that breaks the rules is killed, and
// the run fails.
func TestRemote_ProcessThatBreaksTheRules(t *testing.T) {
	finish := func(d done) func(c *frameConn) {
		return func(c *frameConn) { _ = d.write(c.begin(frameDone)).send() }
	}
	limits := share.Limits{Timeout: 2 * time.Second, Memory: 1 << 20}
	for name, script := range map[string]func(c *frameConn){
		"no frame":             func(c *frameConn) { _, _ = c.conn.Write(bytes.Repeat([]byte{0xff}, 100)) },
		"a frame of gigabytes": func(c *frameConn) { _, _ = c.conn.Write([]byte{0xff, 0xff, 0xff, 0x7f, byte(frameDone)}) },
		"half a frame": func(c *frameConn) {
			_, _ = c.conn.Write([]byte{100, 0, 0, 0, byte(frameDone), 1})
			_ = c.conn.CloseWrite()
		},
		"an unknown kind":         func(c *frameConn) { _ = c.begin(200).send() },
		"a frame of the host's":   func(c *frameConn) { _ = c.begin(frameEnter).text("reconcile").send() },
		"done without fields":     func(c *frameConn) { _ = c.begin(frameDone).send() },
		"a result that is long":   finish(done{result: make([]byte, share.ResultBytes+1)}),
		"more memory than it has": finish(done{size: 2 << 20}),
		"negative memory":         finish(done{size: -1}),
		"negative fuel":           finish(done{usage: instance.Usage{Spent: -1}}),
		"negative time":           finish(done{usage: instance.Usage{Waited: -1}}),
		"a text that is long": func(c *frameConn) {
			c.begin(frameDone).rest(make([]byte, 8*5+3)).text("").text(strings.Repeat("x", text.MaxError+1)).text("")
			_ = c.send()
		},
		"an operation with a long name": func(c *frameConn) { _ = c.begin(frameOperation).text(strings.Repeat("x", maxOpName+1)).i64(0).send() },
		"an operation that lies about its size": func(c *frameConn) {
			_ = c.begin(frameOperation).text("api_get").i64(100).rest([]byte("x")).send()
		},
		"an operation of a negative size": func(c *frameConn) { _ = c.begin(frameOperation).text("api_get").i64(-1).send() },
		"a metric that nobody takes":      func(c *frameConn) { _ = c.begin(frameMetric).i64(1).u64(0).text("x").send() },
		"growing beyond the limit":        func(c *frameConn) { _ = c.begin(frameGrow).i64(2 << 20).send() },
		"shrinking below nothing":         func(c *frameConn) { _ = c.begin(frameGrow).i64(-1).send() },
		"a flood of lines": func(c *frameConn) {
			for c.begin(frameLog).i64(0).rest([]byte("x")).send() == nil {
			}
		},
		"a flood of output": func(c *frameConn) {
			for c.begin(framePrint).i64(0).rest(make([]byte, 1<<10)).send() == nil {
			}
		},
		"a flood of questions without taking answers": func(c *frameConn) {
			for c.begin(frameCancelled).send() == nil {
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ce := callHostile(t, limits, script)
			if ce.Kind != abi.FailureTrap && ce.Kind != abi.FailureTimeout || !strings.Contains(ce.Error(), "guest process") && ce.Kind == abi.FailureTrap {
				t.Errorf("got %v", ce)
			}
		})
	}
}

// A process that does not end its call in time is killed, and the run has timed
// out.
func TestRemote_ProcessThatNeverAnswers(t *testing.T) {
	start := time.Now()
	ce := callHostile(t, share.Limits{Timeout: 100 * time.Millisecond}, func(c *frameConn) {
		_, _ = io.Copy(io.Discard, c.conn)
		select {}
	})
	if ce.Kind != abi.FailureTimeout {
		t.Errorf("got %v, want a timeout", ce)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// Start code has no operations, whatever its process requests.
func TestRemote_StartCodeHasNoOperations(t *testing.T) {
	process := &hostile{serve: func(c *frameConn) {
		if kind, _, _ := c.read(); kind == frameLoad {
			_ = c.begin(frameDone).text("").send()
		} else {
			_ = c.begin(frameOperation).text("config_get").i64(0).send()
		}
	}}
	if in, err := open(t, process, share.Limits{}); err == nil || !strings.Contains(err.Error(), errFrame.Error()) {
		t.Errorf("got %v, %v", in, err)
	}
}

// FuzzRemote_Frames: whatever a guest process sends, at most its call ends.
func FuzzRemote_Frames(f *testing.F) {
	for _, kind := range []frameKind{frameDone, frameOperation, frameMetric, frameCancelled, frameGrow, frameLog, framePrint, 0} {
		f.Add(byte(kind), make([]byte, 60))
		f.Add(byte(kind), binary.LittleEndian.AppendUint32(nil, 3))
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		process := hostileProcess(func(c *frameConn) {
			_ = c.begin(frameKind(kind)).rest(body).send()
			_ = c.conn.Close()
		})
		in, err := open(t, process, share.Limits{Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t, in); err != nil {
			if _, ok := errors.AsType[*abi.CallError](err); !ok {
				t.Fatal(err)
			}
		}
	})
}
