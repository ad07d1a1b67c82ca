// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// scriptHost answers every operation with the same status and body, and records
// its requests.
type scriptHost struct {
	status int32
	body   []byte

	level    int32
	op       string
	req      []byte
	taken    int
	lines    []map[string]any
	forgets  bool
	lastLine int32
}

func (s *scriptHost) Call(op *imports.Op, req, dst []byte) (status int32, length int) {
	s.op, s.req = op.Name, append([]byte(nil), req...)
	if len(s.body) <= len(dst) {
		copy(dst, s.body)
	}
	return s.status, len(s.body)
}

func (s *scriptHost) Take(dst []byte) int32 {
	if s.forgets {
		return StatusBadRequest
	}
	s.taken++
	return int32(copy(dst, s.body))
}

func (s *scriptHost) Log(level int32, msg []byte) {
	v, err := wire.Decode(msg)
	line, ok := v.(map[string]any)
	if err != nil || !ok {
		line = map[string]any{"unreadable": msg}
	}
	s.lastLine = level
	s.lines = append(s.lines, line)
}

func (s *scriptHost) LogLevel() int32                     { return s.level }
func (s *scriptHost) Metric(int32, string, float64) int32 { return StatusUnsupported }
func (s *scriptHost) NowMS() int64                        { return 1767225600123 }
func (s *scriptHost) MonoNS() int64                       { return 1 }
func (s *scriptHost) Random([]byte) bool                  { return true }
func (s *scriptHost) Cancelled() bool                     { return true }
func (s *scriptHost) Budget(int32) int64                  { return -1 }

// answer makes v the answer to every operation.
func (s *scriptHost) answer(t testing.TB, status int32, v any) {
	t.Helper()
	b, err := wire.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	s.status, s.body = status, b
}

// asked returns the last request, decoded.
func (s *scriptHost) asked(t testing.TB) any {
	t.Helper()
	v, err := wire.Decode(s.req)
	if err != nil {
		t.Fatalf("request %x: %v", s.req, err)
	}
	return v
}

// run calls f as a Reconcile with the message, and returns its result.
func run(t testing.TB, host imports.Host, msg []byte, f func(ctx *Context, obj Object) (Action, error)) any {
	t.Helper()
	g := &guest{host: host, reconciler: &Reconciler{Reconcile: f}}
	v, err := wire.Decode(g.call("reconcile", msg))
	if err != nil {
		t.Fatalf("result: %v", err)
	}
	return v
}

// golden returns a golden message of the ABI.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "abi", "testdata", name+".msgpack"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldenValue returns the value of a golden message.
func goldenValue(t testing.TB, name string) map[string]any {
	t.Helper()
	v, err := wire.Decode(golden(t, name))
	if err != nil {
		t.Fatal(err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%s is no map", name)
	}
	return m
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
