// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestProcess_SignalsEndItDuringAttacks: while runs are under way that would go on
// for the default timeout, SIGTERM ends the process when its drain time is over,
// and two SIGINTs end it within a second. The attacks of a family run at the same
// time; with WASMCTL_HOSTILE=all each attack has a process of its own.
func TestProcess_SignalsEndItDuringAttacks(t *testing.T) {
	needsLinux(t)
	for _, f := range families(t) {
		f.entry = maps.Clone(f.entry)
		delete(f.entry, "limits") // so it is the default
		t.Run(f.name, func(t *testing.T) {
			if !everything() {
				f.end(t)
				return
			}
			for _, name := range slices.Sorted(maps.Keys(f.modules)) {
				one := f
				one.modules = map[string][]byte{name: f.modules[name]}
				t.Run(name, one.end)
			}
		})
	}
}

// end ends the family's process by each signal, during all of its attacks.
func (f *family) end(t *testing.T) {
	const drain = time.Second
	t.Run("SIGTERM", func(t *testing.T) {
		p := f.under(t, controllerEntry{"drainTimeout": drain.String()})
		p.signal(syscall.SIGTERM)
		p.wantEnd(drain + time.Second)
	})
	t.Run("SIGINT twice", func(t *testing.T) {
		p := f.under(t, nil)
		p.interruptTwice()
		p.wantEnd(time.Second)
	})
}

// under starts a process, and returns it once all attacks are under way.
func (f *family) under(t *testing.T, entry controllerEntry) *process {
	t.Helper()
	more := *f
	more.entry = maps.Clone(f.entry)
	maps.Copy(more.entry, entry)
	p := more.start(t)
	for name := range f.modules {
		for _, o := range f.names(name) {
			p.create(name, o)
		}
	}
	p.awaitEvery(asking, func() bool {
		for name, c := range p.phases() {
			if name != neighbourName && c.Running == 0 && c.Runs == 0 {
				return false
			}
		}
		return true
	})
	return p
}
