// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// needsLinux skips the test if the system does not report the resources of a process.
func needsLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
}

// TestProcess_AttacksEndInTimeAndMemory runs attacks in the real command with its
// defaults, on a real API server: each run ends within one and a half times its
// timeout, the process takes no more memory than it may, and a neighbour is served
// during each. WASMCTL_HOSTILE=all runs all of them.
func TestProcess_AttacksEndInTimeAndMemory(t *testing.T) {
	needsLinux(t)
	for _, f := range families(t) {
		t.Run(f.name, func(t *testing.T) {
			whole := t
			var p *process
			for _, name := range slices.Sorted(maps.Keys(f.modules)) {
				t.Run(name, func(t *testing.T) {
					if p == nil {
						p = f.start(whole)
					}
					p.t = t
					if !p.endure(&f, name) {
						p.kill() // it may go on for minutes; the next attack meets a new one
						p = nil
					}
				})
			}
		})
	}
}

// start starts the family's process, and waits until it reconciles.
func (f *family) start(t *testing.T) *process {
	t.Helper()
	p := startProcess(t, f.modules, f.entry, f.args...)
	if !p.awaitEvery(asking, func() bool { return p.settled(len(f.modules) + 1) }) {
		t.Fatalf("the controllers do not start: %+v", p.phases())
	}
	for name, c := range p.phases() {
		if c.Phase != "running" {
			t.Errorf("controller %s is %s: %s", name, c.Phase, c.Message)
		}
	}
	p.base, _ = memoryOf(t, p.pid())
	return p
}

// settled reports whether n controllers run, or cannot be started.
func (p *process) settled(controllers int) bool {
	all := p.phases()
	n := 0
	for _, c := range all {
		if c.Phase == "running" || c.Phase == "failed" {
			n++
		}
	}
	return n == controllers
}

// endure has the process run one attack, and reports whether it came out of it.
func (p *process) endure(f *family, name string) bool {
	p.t.Helper()
	forgetPeak(p.pid())
	since, objects := p.logged(), f.names(name)
	watch := startWatch(p.t, p.pid())
	for _, o := range objects {
		p.create(name, o)
	}
	neighbour := p.served("beside-" + name)
	ended := p.await(func() bool {
		return !slices.ContainsFunc(objects, func(o string) bool { return !p.ran(since, o) })
	})
	took, delay := watch.read(p.t)
	rounds := time.Duration(max(1, (len(objects)+3)/4))
	late := watch.late(p.t, rounds*(attackTimeout*3/2)+50*time.Millisecond)
	_, peak := memoryOf(p.t, p.pid())
	for _, o := range objects {
		p.remove(o)
	}
	p.t.Logf("%v for a timeout of %v, %d MiB beside %d; the neighbour %v; delayed by others %v", took, attackTimeout, (peak-p.base)>>20, p.base>>20, neighbour, delay)
	if late != "" {
		p.t.Errorf("%s; the run ended: %v", late, ended)
	}
	if most := p.base + f.memory; peak > most {
		p.t.Errorf("the process took %d MiB, want %d", peak>>20, most>>20)
	}
	return ended
}

// asking is how often a process is asked for its status.
const asking = 50 * time.Millisecond

// phases are those of the controllers, by name.
func (p *process) phases() map[string]admin.Controller {
	out := map[string]admin.Controller{}
	st, err := p.admin.Status(p.t.Context())
	if err != nil {
		return out
	}
	for _, c := range st.Controllers {
		out[c.Name] = c
	}
	return out
}
