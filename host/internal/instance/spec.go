// SPDX-License-Identifier: Apache-2.0

// Package instance makes and calls the instances of a module. An Instance is one guest with
// everything that bounds its calls. Its code runs in this process (Local) or in a guest
// process (package isolate); both implement Guest.
package instance

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// Spec is what all instances of a revision have in common. It does not change once there
// are instances.
type Spec struct {
	*operation.Env

	Code     *load.Code
	Manifest *abi.Manifest // nil before it is known
	Program  string        // os.Args[0] of the guest
	Tenant   string        // modules of one tenant may start from one image
	Slice    int64         // fuel of a time slice; 0 is about the right time
	CPUs     *share.CPUScheduler
	Watchdog *share.Watchdog
	Clock    operation.Clock
	Observer operation.Observer
	All      *Set
}

// Hook reports whether the module has an optional export, and its manifest does not exclude
// it.
func (s *Spec) Hook(name string) bool { return s.Manifest.Hook(name, s.Code.Hooks[name]) }

// Entry is one way into a guest.
type Entry struct {
	Name   string
	Limit  time.Duration // how long it may run
	Access operation.Access
}

// HookTimeout bounds one call of map or filter if Limits.Timeout is not less: they delay the
// reconcile of an event.
const HookTimeout = 5 * time.Second

// Entry returns an entry with its bounds.
func (s *Spec) Entry(name string) Entry {
	e := Entry{Name: name, Limit: s.Limits.Timeout, Access: operation.AccessAll}
	switch name {
	case abi.ExportMap, abi.ExportFilter:
		e.Limit, e.Access = min(e.Limit, HookTimeout), operation.AccessCache
	case abi.ExportValidate, abi.ExportDefault:
		e.Access = operation.AccessCache
	case abi.ExportConfigure, abi.ExportConvert:
		e.Access = operation.AccessConfig
	case abi.ExportInitialize, abi.ExportDescribe, abi.ExportPrepare:
		e.Access = operation.AccessNone
	}
	return e
}

// bare reports whether an entry takes no message.
func (e *Entry) bare() bool { return e.Name == abi.ExportDescribe || e.Name == abi.ExportPrepare }

// Message is the input of an entry: Head[:Split], First, Head[Split:], Second.
type Message struct {
	Head          []byte
	Split         int
	First, Second []byte
}

// Size returns the length of the message.
func (m *Message) Size() int { return len(m.Head) + len(m.First) + len(m.Second) }
