// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"io"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/internal/wasi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// wasiFuncs are the functions of WASI.
var wasiFuncs = wasi.Funcs()

// wasiGuest is a guest as package wasi sees it.
type wasiGuest Local

// Memory implements wasi.Guest.
func (g *wasiGuest) Memory() wasi.Memory { return g.memory }

// Charge implements wasi.Guest.
func (g *wasiGuest) Charge(n int) { (*Local)(g).Charge(n) }

// Program implements wasi.Guest.
func (g *wasiGuest) Program() string { return g.core.Spec.Program }

// Descriptors implements wasi.Guest.
func (g *wasiGuest) Descriptors() *wasi.Descriptors { return &g.descriptors }

// Files implements wasi.Guest.
func (g *wasiGuest) Files() *wasi.Files { return g.code.Files }

// Now implements wasi.Guest.
func (g *wasiGuest) Now() time.Time {
	g.core.Run.Sources |= abi.SourceClock
	t := g.core.Spec.Clock.Now()
	if g.given != nil {
		g.given.AddTime(t.UnixNano())
	}
	return t
}

// Mono implements wasi.Guest.
func (g *wasiGuest) Mono() int64 {
	g.core.Run.Sources |= abi.SourceClock
	return g.core.Spec.Clock.Mono()
}

// Random implements wasi.Guest.
func (g *wasiGuest) Random(b []byte) error {
	g.core.Run.Sources |= abi.SourceRandom
	_, err := io.ReadFull(g.core.Spec.Clock.Random, b)
	if g.given != nil {
		g.given.AddRandom(b)
	}
	if err != nil {
		g.core.Spec.Log.Error("random: cannot read the source of randomness", "error", err)
	}
	return err
}

// Sleep implements wasi.Guest.
func (g *wasiGuest) Sleep(d time.Duration) {
	c := g.core
	c.Run.Sources |= abi.SourceClock
	had := c.pause()
	startedAt := time.Now()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.interrupt.done:
	}
	c.time.idled(startedAt)
	c.unpause(had)
}

// Write implements wasi.Guest.
func (g *wasiGuest) Write(fd int32, b []byte) {
	stream := operation.Stdout
	if fd == 2 {
		stream = operation.Stderr
	}
	g.host.Print(stream, b)
}

// Exit implements wasi.Guest.
func (g *wasiGuest) Exit(code uint32) {
	_ = g.module.CloseWithExitCode(&g.ctx, code) // nothing is open whose closing could fail
	panic(vm.NewExitError(code))
}
