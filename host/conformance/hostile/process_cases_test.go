// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// allVar has the suite run all attacks as processes, and not some of each kind.
const allVar = "WASMCTL_HOSTILE"

func everything() bool { return os.Getenv(allVar) == "all" }

// family is a group of attacks that one process meets, one after the other.
type family struct {
	name    string
	modules map[string][]byte
	entry   controllerEntry
	args    []string
	// objects is the number of objects of each attack that run at the same time; 0 means one.
	objects int
	// memory is the memory that the process may use in addition to that before all attacks: linear
	// memory, what the host reads and decodes, stacks, and the same amount of garbage.
	memory int64
}

// attackTimeout is that of attacks whose time is measured.
const attackTimeout = 500 * time.Millisecond

// families are all of them, or some attacks of each.
func families(t *testing.T) []family {
	t.Helper()
	pick := func(modules map[string][]byte, names ...string) map[string][]byte {
		if everything() {
			return modules
		}
		maps.DeleteFunc(modules, func(name string, _ []byte) bool { return !slices.Contains(names, name) })
		if len(modules) != len(names) {
			t.Fatalf("of %q only %d are there", names, len(modules))
		}
		return modules
	}
	hostCalls, wasi := loopBytes(hostLoops()), loopBytes(wasiLoops(t))
	limits := controllerEntry{"limits": map[string]any{"timeout": attackTimeout.String()}}
	dry := controllerEntry{"limits": map[string]any{"timeout": attackTimeout.String()}, "mode": "DryRunClient"}
	return []family{
		{name: "host functions", entry: limits, memory: 256 << 20, modules: pick(hostCalls,
			"host-log-of-maps", "api-create-empty-maps", "api-update-wide-and-deep", "cache-list-4-mb-selector", "api-list-4-mb-selector",
			"api-patch-100000-operations")},
		{name: "WASI", entry: limits, memory: 64 << 20, modules: pick(wasi,
			"wasi-fd-write-of-vectors", "wasi-fd-read-of-vectors", "wasi-poll-oneoff-of-80000", "wasi-poll-oneoff-that-sleeps", "wasi-random-get-of-8-mib", "wasi-clock-time-get-zeros")},
		{name: "dry run", entry: dry, memory: 64 << 20, modules: loopBytes(some(hostLoops(), "api_patch: copy bomb", "api_patch: wide and deep"))},
		{name: "guest", entry: limits, memory: 320 << 20, modules: pick(guestFiles(t),
			"spin", "recurse", "recurse-wide", "grow-touch", "flood-log", "spin-operations")},
		{name: "stack", entry: limits, memory: 64 << 20, modules: map[string][]byte{"large-frames": largeFrames(1000), "larger-frames": largeFrames(10_000)}},
		{name: "concurrency", entry: limits, objects: 24, memory: 320 << 20, args: []string{"--memory-budget", "256Mi"}, modules: map[string][]byte{
			"ten-thousand": tenThousand(),
		}},
	}
}

// plainName is a name as that of a controller is spelled.
func plainName(name string) string {
	name = strings.NewReplacer(": ", "-", ", ", "-", ",", "", " ", "-", "_", "-").Replace(name)
	return strings.ToLower(name)
}

func some(loops map[string]*hostLoop, names ...string) map[string]*hostLoop {
	maps.DeleteFunc(loops, func(name string, _ *hostLoop) bool { return !slices.Contains(names, name) })
	return loops
}

func loopBytes(loops map[string]*hostLoop) map[string][]byte {
	out := map[string][]byte{}
	for name, l := range loops {
		out[plainName(name)] = l.bytes()
	}
	return out
}

// guestFiles are the guests of the suite whose reconcile is the attack.
func guestFiles(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, a := range attacks() {
		if a.on != "" || a.bytes != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join("guests", a.guest+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		out[plainName(a.guest)] = b
	}
	return out
}

// largeFrames recurses without end, with many operands alive across each call. They are not in
// locals, and each has its slot in the frame.
func largeFrames(operands int) []byte {
	m := plain()
	m.types = append(m.types, []byte{0x60, 1, wasmI64, 1, wasmI64})
	m.funcs = append(m.funcs, []byte{3})
	var code []byte
	for i := range operands { // loads: a constant would be made again after the call
		code = append(code, 0x41)
		code = append(appendSigned(code, int64(i*8%65536)), 0x29, 3, 0)
	}
	code = append(code, 0x20, 0, 0x10, 3)
	code = append(code, slices.Repeat([]byte{0x7c}, operands)...)
	m.bodies = append(m.bodies, body(code...))
	m.bodies[2] = body(0x42, 0, 0x10, 3)
	return m.bytes()
}

// tenThousand wants to be run ten thousand times at once, and each time takes all
// memory that it is given, for as long as it may.
func tenThousand() []byte {
	m := plain()
	m.bodies[2] = body(
		0x03, 0x40, // until memory is refused: a page more, and all of it is touched
		0x41, 0, 0x41, 1, 0x3f, 0, 0x41, 16, 0x74, 0xfc, 0x0b, 0,
		0x41, 16, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b,
		0x03, 0x40, 0x0c, 0, 0x0b, 0x00, // then for ever
	)
	m.behind = manifestOf(map[string]any{"concurrency": 10_000})
	return m.bytes()
}

// names are the objects of an attack.
func (f *family) names(attack string) (out []string) {
	for i := range max(1, f.objects) {
		out = append(out, fmt.Sprintf("%s-%d", attack, i))
	}
	return out
}
