package metrics

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Stats are the figures of a controller that it keeps itself, at one moment.
type Stats struct {
	// Ready requests are due; ReadyLow of them are of low priority. Waiting ones
	// wait for a time, Running ones are being reconciled.
	Ready, ReadyLow, Waiting, Running int
	// Concurrency is how many may run at a time.
	Concurrency int
	// Started, Received and Requeued count runs, requests and requeues.
	Started, Received, Requeued uint64
	// OldestReady is how long the next request has been due. OldestRunning and
	// Unfinished are the ages of the oldest run, and of all added up.
	OldestReady, OldestRunning, Unfinished time.Duration

	// LogsDropped counts log lines that came too often.
	LogsDropped uint64
	// Synced and Paused are about the controller as a whole.
	Synced, Paused bool
	// Failing, Quarantined, Unmapped and Hot count objects.
	Failing, Quarantined, Unmapped, Hot int
	// HotLoops and Stale count since the start.
	HotLoops, Stale uint64
	// Memo counts runs by what is remembered of them, Remembered the objects; nil
	// where nothing is.
	Memo       map[string]uint64
	Remembered int

	// Revision and Digest are those of the live module. States counts the
	// revisions by state, Instances those of all.
	Revision  uint64
	Digest    string
	States    map[string]int
	Instances int
	// Image says that instances start from an image, where there are several.
	Image bool
	// Memory is the linear memory of all instances, in bytes.
	Memory int64
	// ProcessMemory is what is resident of the process that the instances are in,
	// in bytes, where they have one of their own; else 0.
	ProcessMemory int64
	// Guest is how long the module computed, Host how long the host did in runs.
	Guest, Host time.Duration
	// Requests counts those of runs to the API server, Decoded the bytes of their
	// answers, and of what was decoded for the controller in its watches.
	Requests, Decoded int64
	// HostMemory is the host's own memory for operations of the module, in bytes.
	HostMemory int64
	// Fuel and UnknownKeys count since the start.
	Fuel, UnknownKeys uint64
	// Limits counts how often each limit was reached, Recycled the instances that
	// were replaced, by reason, Events the events, by what became of them.
	Limits   map[abi.LimitName]uint64
	Recycled map[string]uint64
	Events   map[string]uint64
}

// Process are the figures of what the controllers share.
type Process struct {
	// Controllers counts them by phase: loading, waiting, running, failed.
	Controllers map[string]int
	Watches     []Watch
	Leader      *Leader  // nil without an election
	Shards      *Shards  // nil unless replicas share the objects
	Budget      *Budget  // nil without one
	Workers     *Workers // nil without a bound of the process
	// ForgedCode counts entries of the compilation cache that were ignored.
	ForgedCode uint64
}

// Watch is one watch.
type Watch struct {
	// Resource is as kubectl writes it, State its phase.
	Resource, State string
	// Age is how long ago it last made progress.
	Age time.Duration
	// Failures counts failed requests since it was last ready.
	Failures int
	Stalled  bool
	// Objects and Bytes are those of its store.
	Objects int
	Bytes   int64
	// Compressed is how many of these objects are compressed, and Saved how many bytes
	// less they take by that.
	Compressed int
	Saved      int64
}

// Leader is the part of this process in an election.
type Leader struct {
	// Name is that of the Lease.
	Name  string
	Leads bool
}

// Shards is what this replica knows of the slots that the objects are split into.
type Shards struct {
	// States counts all slots by state; each state is in it.
	States map[string]int
	// Epoch is that of the record, Moves counts the slots that were taken or given.
	Epoch, Moves uint64
	// Load is how long the runs of this replica's slots take, in seconds a second.
	Load float64
}

// Budget is the memory that all guests, and the host for them, share, in bytes.
type Budget struct {
	Limit, Used int64
	Refused     uint64
}

// Workers are those that all controllers share.
type Workers struct{ Limit, Running, Waiting int }
