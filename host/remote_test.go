package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// hostileProcess is an Isolation whose process loads code and makes instances as
// it should, and then answers each call with script.
func hostileProcess(script func(c *frameConn)) *localIsolation {
	return &localIsolation{serve: func(accept func() (GuestConn, error)) {
		for {
			conn, err := accept()
			if err != nil {
				return
			}
			go func() {
				c := &frameConn{conn: conn, limit: maxLoad}
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
			}()
		}
	}}
}

// call runs a guest of a hostile process once.
func callHostile(t *testing.T, cfg Config, script func(c *frameConn)) error {
	t.Helper()
	iso := hostileProcess(script)
	cfg.Isolation = iso
	timeout := cfg.LimitsFor(nil).Timeout
	cfg.Limits.Timeout = 0
	m := load(t, wasm.Empty, cfg)
	g, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	hurry(m, timeout)
	_, err = g.Reconcile(t.Context(), request(0))
	if err == nil {
		t.Fatal("the run came to no error")
	}
	iso.mu.Lock()
	defer iso.mu.Unlock()
	if iso.last.Ended() == nil {
		t.Error("the process lives on")
	}
	return err
}

// What a guest process says is checked: one that breaks the rules is killed, and
// the run fails.
func TestRemote_ProcessThatBreaksTheRules(t *testing.T) {
	finish := func(d done) func(c *frameConn) {
		return func(c *frameConn) { _ = d.write(c.begin(frameDone)).send() }
	}
	limits := Limits{Timeout: 2 * time.Second, Memory: 1 << 20, ResultBytes: 1 << 10, RequestBytes: 1 << 10}
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
		"a result that is long":   finish(done{result: make([]byte, 2<<10)}),
		"more memory than it has": finish(done{size: 2 << 20}),
		"negative memory":         finish(done{size: -1}),
		"negative fuel":           finish(done{spent: -1}),
		"negative time":           finish(done{waited: -1}),
		"a text that is long": func(c *frameConn) {
			c.begin(frameDone).rest(make([]byte, 8*5+3)).text("").text(strings.Repeat("x", maxText+1)).text("")
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
			ce := callError(t, callHostile(t, Config{Limits: limits}, script))
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
	ce := callError(t, callHostile(t, Config{Limits: Limits{Timeout: 100 * time.Millisecond}}, func(c *frameConn) {
		_, _ = io.Copy(io.Discard, c.conn)
		select {}
	}))
	if ce.Kind != abi.FailureTimeout {
		t.Errorf("got %v, want a timeout", ce)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// Start code has no operations, whatever its process asks for.
func TestRemote_StartCodeHasNoOperations(t *testing.T) {
	iso := &localIsolation{serve: func(accept func() (GuestConn, error)) {
		for {
			conn, err := accept()
			if err != nil {
				return
			}
			c := &frameConn{conn: conn, limit: maxLoad}
			if kind, _, _ := c.read(); kind == frameLoad {
				_ = c.begin(frameDone).text("").send()
			} else {
				_ = c.begin(frameOperation).text("config_get").i64(0).send()
			}
		}
	}}
	if m, err := Load(t.Context(), wasm.Empty, Config{Isolation: iso}); err == nil || !strings.Contains(err.Error(), errFrame.Error()) {
		t.Errorf("got %v, %v", m, err)
	}
}

// FuzzRemote_Frames: no bytes of a guest process do more than end its call.
func FuzzRemote_Frames(f *testing.F) {
	for _, kind := range []frameKind{frameDone, frameOperation, frameMetric, frameCancelled, frameGrow, frameLog, framePrint, 0} {
		f.Add(byte(kind), make([]byte, 60))
		f.Add(byte(kind), binary.LittleEndian.AppendUint32(nil, 3))
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		iso := hostileProcess(func(c *frameConn) {
			_ = c.begin(frameKind(kind)).rest(body).send()
			_ = c.conn.Close()
		})
		m := load(t, wasm.Empty, Config{Isolation: iso, Limits: Limits{Timeout: time.Second}})
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
			if _, ok := errors.AsType[*abi.CallError](err); !ok {
				t.Fatal(err)
			}
		}
	})
}
