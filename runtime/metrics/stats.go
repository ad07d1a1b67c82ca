// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// Stats is a snapshot of the figures of a controller that are not counted in Controller.
type Stats struct {
	runner.Stats

	// Concurrency is the maximum number of concurrent runs.
	Concurrency int
	// LogsDropped counts log lines that were dropped because they came too often.
	LogsDropped uint64
	// Synced and Paused are the state of the controller as a whole.
	Synced, Paused bool
	// Failing, Quarantined, Unmapped, Hot and Stranded count objects.
	Failing, Quarantined, Unmapped, Hot, Stranded int
	// HotLoops and Stale count since the start.
	HotLoops, Stale uint64
	// Memo counts runs by what the memo did with them, and Remembered the objects; Memo is nil without a memo.
	Memo       map[string]uint64
	Remembered int

	// Revision and Digest identify the live module. States is the number of revisions by state, and Instances the number of instances of
	// all of them.
	Revision  uint64
	Digest    string
	States    map[string]int
	Instances int
	// Image reports whether instances start from an image.
	Image bool
	// Memory is the linear memory of all instances, in bytes.
	Memory int64
	// ProcessMemory is the resident memory of the instances' process in bytes, or 0 if they have no process of their own.
	ProcessMemory int64
	// Guest is the computing time of the module, and Host that of the host in runs.
	Guest, Host time.Duration
	// Requests counts requests of runs to the API server; Decoded counts the bytes decoded from their responses and in the controller's
	// watches.
	Requests, Decoded int64
	// HostMemory is the host's own memory for operations of the module, in bytes.
	HostMemory int64
	// Fuel and UnknownKeys count since the start.
	Fuel, UnknownKeys uint64
	// Limits counts the hits of each limit, Recycled the replaced instances by reason, and Events the events by result.
	Limits   map[abi.LimitName]uint64
	Recycled map[string]uint64
	Events   map[string]uint64
}

// Process is a snapshot of the figures that the controllers share.
type Process struct {
	// Controllers is their number by phase: loading, waiting, running, failed.
	Controllers map[string]int
	Watches     []Watch
	Leader      *Leader  // nil without an election
	Shards      *Shards  // nil unless replicas share the objects
	Budget      *Budget  // nil without a budget
	Workers     *Workers // nil without a limit of the process
	// ForgedCode counts ignored entries of the compilation cache.
	ForgedCode uint64
	// Events counts the events of the process itself by result.
	Events map[string]uint64
}

// Watch describes one watch.
type Watch struct {
	// Resource is the resource as kubectl writes it; State is the phase.
	Resource, State string
	// Age is the time since its last progress.
	Age time.Duration
	// Failures counts failed requests since it was last ready.
	Failures int
	Stalled  bool
	// Objects and Bytes describe its store.
	Objects int
	Bytes   int64
	// Compressed is the number of compressed objects, and Saved the number of bytes that this saves.
	Compressed int
	Saved      int64
}

// Leader is the state of this process in an election.
type Leader struct {
	// Name is the name of the Lease.
	Name  string
	Leads bool
}

// Shards describes the slots, as seen by this replica.
type Shards struct {
	// States is the number of slots in each state, including zeros.
	States map[string]int
	// Epoch is the epoch of the record. Moves counts the slots that were received or given away, and Ended the leases of silent replicas
	// that this one has ended.
	Epoch, Moves, Ended uint64
	// PeerAge is the time since the lease of another replica changed, of the one that has not changed for the longest time.
	PeerAge time.Duration
	// Objects is the number of objects in each slot of this replica, by slot.
	Objects map[int]int
	// Load is the computing time of this replica's slots, in seconds per second.
	Load float64
}

// Budget is the memory shared by all guests and their host operations, in bytes.
type Budget struct {
	Limit, Used int64
	Refused     uint64
	// Tenants has the part of Used of each tenant.
	Tenants map[string]int64
}

// Workers are the workers that all controllers share.
type Workers struct{ Limit, Running, Waiting int }
