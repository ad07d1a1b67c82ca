// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
)

// forged is a text that would command a terminal, and that would say something of
// its own on a line of its own.
const forged = "x\x1b]0;t\x07\x1b[2J\x00\r\nFORGED yes\u0085FORGED \u009b31m\u202eFORGED\u2028FORGED"

// wantHonest checks that a text has no terminal commands, and no line of a guest.
func wantHonest(t *testing.T, of string, out []byte) {
	t.Helper()
	if len(out) > 1<<20 {
		t.Errorf("%s is %d bytes long", of, len(out))
	}
	if !utf8.Valid(out) {
		t.Errorf("%s is not UTF-8", of)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "FORGED") { // a text of a guest may have lines, where they are set off
			t.Errorf("%s has a line of the guest's: %.200q", of, line)
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
				t.Errorf("%s has %U: %.200q", of, r, line)
				break
			}
		}
	}
}

// ask runs a command to its end, and returns its output. It must end soon.
func ask(t *testing.T, most int64, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), wasmctlBinary(t), args...) //nolint:gosec // what we have built
	cmd.Env = append(cmd.Environ(), "KUBECONFIG=/nowhere")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, done: make(chan struct{})}
	var peak int64
	go func() {
		_ = cmd.Wait() // how it ends is its own affair
		close(p.done)
	}()
	if !p.await(func() bool {
		_, now := memoryOf(t, p.pid()) // the system's own figure has that of this process in it
		peak = max(peak, now)
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	}) {
		t.Errorf("%q does not end", args[:1])
		_ = cmd.Process.Kill()
		<-p.done
	}
	if peak > most {
		t.Errorf("%q took %d MiB, want %d", args[:1], peak>>20, most>>20)
	}
	return out.Bytes()
}

// commandMemory is the memory that a command may use for a module. The program itself is a tenth of
// it.
const commandMemory = 256 << 20

// TestProcess_OutputIsHonest: for any claims of a module, inspect, validate and rbac end, use
// little memory, and print no terminal commands and no line of the module.
func TestProcess_OutputIsHonest(t *testing.T) {
	needsLinux(t)
	dir := t.TempDir()
	p := &process{t: t, dir: dir}
	for name, module := range saying() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := name + ".wasm"
			p.write(file, module)
			for _, command := range []string{"inspect", "validate", "rbac"} {
				wantHonest(t, command, ask(t, commandMemory, command, filepath.Join(dir, file)))
			}
		})
	}
}

// saying are modules that write forged text in every possible place, and modules with very long
// texts.
func saying() map[string][]byte {
	out := map[string][]byte{
		"export":              with(func(m *binaryModule) { m.exports = append(m.exports, export(forged, 0, 0)) })(),
		"import":              with(func(m *binaryModule) { m.importing("env", forged, nil, nil) })(),
		"module of an import": with(func(m *binaryModule) { m.importing(forged, "x", nil, nil) })(),
		"import of the host":  with(func(m *binaryModule) { m.importing(abi.ImportModule, forged, nil, nil) })(),
		"custom section":      ending(section(customSection, append(text(forged), 1, 2))...)(),
	}
	for name, manifest := range manifests() {
		m := plain()
		m.behind = manifestOf(manifest)
		out["manifest "+name] = m.bytes()
	}
	return out
}

// manifests are manifests, by their error.
func manifests() map[string]map[string]any {
	kind := func(more map[string]any) map[string]any {
		k := map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"}
		maps.Copy(k, more)
		return k
	}
	right := func(more map[string]any) map[string]any {
		r := map[string]any{"group": "", "resource": "configmaps", "verbs": []any{"get"}}
		maps.Copy(r, more)
		return map[string]any{"for": kind(nil), "capabilities": []any{r}}
	}
	lies := []any{forged}
	many := func(n int, with string) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = with + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576))
		}
		return out
	}
	watches := make([]any, 3000)
	for i, value := range many(len(watches), "v") {
		watches[i] = kind(map[string]any{"map": "owner", "labelSelector": "n=" + value.(string)})
	}
	return map[string]map[string]any{
		"name": {"name": forged, "for": kind(nil)}, "version": {"version": forged, "for": kind(nil)}, "sdk": {"sdk": forged, "for": kind(nil)},
		"kind": {"for": kind(map[string]any{"kind": forged})}, "group": {"for": kind(map[string]any{"group": forged})},
		"version of the kind": {"for": kind(map[string]any{"version": forged})}, "selector": {"for": kind(map[string]any{"labelSelector": forged})},
		"field selector": {"for": kind(map[string]any{"fieldSelector": forged})}, "namespaces": {"for": kind(map[string]any{"namespaces": lies})},
		"predicates": {"for": kind(map[string]any{"predicates": lies})}, "map": {"for": kind(nil), "watches": []any{kind(map[string]any{"map": forged})}},
		"owns":      {"for": kind(nil), "owns": []any{kind(map[string]any{"kind": forged})}},
		"finalizer": {"for": kind(nil), "finalizer": forged}, "requires": {"for": kind(nil), "requires": lies}, "wants": {"for": kind(nil), "wants": lies},
		"hooks": {"for": kind(nil), "hooks": lies}, "config": {"for": kind(nil), "config": map[string]any{forged: forged}},
		"unknown key": {"for": kind(nil), forged: forged}, "limits": {"for": kind(nil), "limits": map[string]any{forged: 1}},
		"resource": right(map[string]any{"resource": forged}), "verbs": right(map[string]any{"verbs": lies}), "right's group": right(map[string]any{"group": forged}),
		"right's names": right(map[string]any{"names": lies}), "right's namespaces": right(map[string]any{"namespaces": lies}),
		"subresources": right(map[string]any{"subresources": lies}), "fields": right(map[string]any{"verbs": []any{"update"}, "fields": lies}),

		"200,000 names in 200,000 namespaces": right(map[string]any{"names": many(200_000, ""), "namespaces": many(200_000, "")}),
		"400,000 fields":                      right(map[string]any{"verbs": []any{"update"}, "fields": many(400_000, "data.")}),
		"400,000 verbs":                       right(map[string]any{"verbs": many(400_000, "")}),
		"3,000 watches":                       {"for": kind(nil), "watches": watches},
		"400,000 settings":                    {"for": kind(nil), "config": settings(many(200_000, "k"))},
		"another's finalizer":                 {"for": kind(nil), "finalizer": "kubernetes.io/pvc-protection"},
		"ten thousand at a time":              {"for": kind(nil), "concurrency": 10_000},
	}
}

func settings(names []any) map[string]any {
	out := map[string]any{}
	for _, n := range names {
		out[n.(string)] = ""
	}
	return out
}

// resultOf is a guest that returns a result, always the same, and logs it first.
func resultOf(result any) []byte {
	m := plain()
	msg := packed(result)
	m.importing(abi.ImportModule, "log", slices.Repeat([]byte{wasmI32}, 3), nil)
	m.memories[0] = []byte{0, 2}
	code := append(appendSigned([]byte{0x41, 8, 0x41}, dataAt), 0x41)
	code = append(appendSigned(code, int64(len(msg))), 0x10, 0, 0x42)
	m.bodies[2] = body(appendSigned(code, dataAt<<32|int64(len(msg)))...)
	m.data = [][]byte{append(append(appendSigned([]byte{0, 0x41}, dataAt), 0x0b), sized(msg)...)}
	return m.bytes()
}

// lying are guests whose runs end with a text of theirs.
func lying() map[string][]byte {
	trap := plain()
	trap.bodies[2] = body(0x00)
	trap.behind = names(section(1, vector([][]byte{append([]byte{2}, text(forged)...)})))
	return map[string][]byte{
		"error":  resultOf(map[string]any{"msg": forged, forged: forged, "error": map[string]any{"message": forged, "reason": forged, "class": "transient"}}),
		"action": resultOf(map[string]any{"msg": forged, "action": forged}),
		"child":  resultOf(map[string]any{"msg": forged, "apply": []any{map[string]any{"apiVersion": forged, "kind": forged, "metadata": map[string]any{"name": forged}}}}),
		"secret": resultOf(map[string]any{"msg": forged, "apply": []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": forged}}}}),
		"trap":   trap.bytes(),
	}
}

// TestProcess_WhatRunsSayIsShownHonestly: status, explain, logs and the log itself
// show what guests say, and are not taken in by it.
func TestProcess_WhatRunsSayIsShownHonestly(t *testing.T) {
	needsLinux(t)
	f := family{modules: lying()}
	p := f.start(t)
	for name := range f.modules {
		since := p.logged()
		p.create(name, name+"-0")
		if !p.await(func() bool { return p.ran(since, name+"-0") }) {
			t.Fatalf("%s does not run", name)
		}
	}
	for _, args := range [][]string{{"status"}, {"top"}, {"status", "-o", "yaml"}} {
		wantHonest(t, args[0], p.ask(args...))
	}
	for name := range f.modules {
		wantHonest(t, "explain of "+name, p.ask("explain", p.ns+"/"+name+"-0", "--controller", name))
		p.mu.Lock()
		wantHonest(t, "the log", []byte(strings.Join(p.lines, "")))
		p.mu.Unlock()
	}
}

// ask asks the process with a command.
func (p *process) ask(args ...string) []byte {
	p.t.Helper()
	out := ask(p.t, commandMemory, append(args, "--socket", p.socket())...)
	if len(out) == 0 {
		p.t.Errorf("%q says nothing", args)
	}
	return out
}

// TestProcess_ManifestsOfAnySize: a process with manifests of any size reports the errors of each,
// or accepts it within its limits, serves the neighbor meanwhile, and ends within a second after
// two SIGINTs.
func TestProcess_ManifestsOfAnySize(t *testing.T) {
	needsLinux(t)
	modules := map[string][]byte{}
	for name, manifest := range manifests() {
		if !slices.Contains([]string{"200,000 names in 200,000 namespaces", "400,000 fields", "400,000 verbs", "3,000 watches", "400,000 settings", "another's finalizer"}, name) {
			continue
		}
		m := plain()
		m.behind = manifestOf(manifest)
		if _, ok := manifest["finalizer"]; ok {
			m.exports = append(m.exports, export(abi.ExportFinalize, 0, 2))
		}
		modules[strings.ReplaceAll(plainName(name), "'", "")] = m.bytes()
	}
	modules["many-locals"] = with(func(m *binaryModule) {
		for range 850 {
			m.funcs, m.bodies = append(m.funcs, []byte{2}), append(m.bodies, bodyOf(50_000, 0x42, 0))
		}
	})()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		t.Run(name, func(t *testing.T) {
			p := startProcess(t, map[string][]byte{name: modules[name]}, nil)
			watch := startWatch(t, p.pid())
			p.awaitEvery(asking, func() bool { c := p.phases()[neighbourName]; return c.Phase == "running" })
			p.served("beside")
			p.awaitEvery(asking, func() bool { return p.settled(2) })
			took, delay := watch.read(t)
			_, peak := memoryOf(t, p.pid())
			c := p.phases()[name]
			t.Logf("%s after %v, %v of others: %.300q; %d MiB", c.Phase, took, delay, c.Message, peak>>20)
			if name != "many-locals" && c.Phase != "failed" {
				t.Errorf("it is %s", c.Phase)
			}
			if peak > commandMemory {
				t.Errorf("the process took %d MiB, want %d", peak>>20, commandMemory>>20)
			}
			p.interruptTwice()
			p.wantEnd(time.Second)
		})
	}
}
