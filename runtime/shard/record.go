// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Record specifies which replica runs each slot. All replicas share it, and change it only by compare-and-swap. A replica of an older
// version removes fields that it does not know when it changes the record, so a new field must be safe to lose.
type Record struct {
	// ID identifies the record: it is the UID of its Lease. A record that replaces a deleted one has another ID.
	ID string `json:"-"`
	// Version is the version of the format, 0 so far. A replica that does not know the version starts nothing, and stops what it runs.
	Version int `json:"version,omitempty"`
	// Epoch counts the changes.
	Epoch uint64 `json:"epoch"`
	// Keys are the fields that determine the slots of each controller's objects: slots.UID or slots.Namespace. The first replica that runs
	// a controller decides.
	Keys map[string]string `json:"keys,omitempty"`
	// Balanced lists the replicas among which the slots were last balanced.
	Balanced string `json:"balanced,omitempty"`
	// Wanted is what commands have asked of all replicas, by controller.
	Wanted map[string]Wanted `json:"wanted,omitempty"`
	Slots  []Slot            `json:"slots"`
}

// Slot is a part of the objects.
type Slot struct {
	// Owner is the replica that runs the objects. While its lease lasts, only the owner can give the slot to another replica. Empty if
	// there is none.
	Owner string `json:"owner,omitempty"`
	// Next is the replica that should get the slot from the owner; empty if there is none.
	Next string `json:"next,omitempty"`
	// Epoch and Moved are those of the last change of the owner. Moved is for people.
	Epoch uint64    `json:"epoch,omitempty"`
	Moved time.Time `json:"moved,omitzero"`
	// Handover is the state that the previous owner left, by controller. If it has no entry for a controller, the last writes of the
	// previous owner are unknown, because it died.
	Handover map[string]Handover `json:"handover,omitempty"`
}

// Handover is the state that the owner of a slot leaves to the next one.
type Handover struct {
	// Writes are the last writes: the next owner waits until its cache includes them.
	Writes []Write `json:"writes,omitempty"`
	// Failing are the objects whose last runs failed.
	Failing []Failing `json:"failing,omitempty"`
	// Deleted are objects that are gone, and whose deletion no run has handled yet.
	Deleted []abi.Key `json:"deleted,omitempty"`
	// Due are objects that have changed and did not run since. They run before all other objects of the slot.
	Due []abi.Key `json:"due,omitempty"`
}

// Write is a write of a run, with the fields that a cache can show.
type Write struct {
	Group           string            `json:"group,omitempty"`
	Resource        string            `json:"resource"`
	Key             abi.Key           `json:"key"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Deleted         bool              `json:"deleted,omitempty"`
}

// Failing is an object whose last runs failed.
type Failing struct {
	Key     abi.Key   `json:"key"`
	UID     string    `json:"uid,omitempty"`
	Attempt int       `json:"attempt"`
	Since   time.Time `json:"since"`
	// Retry is when the next run is due.
	Retry time.Time `json:"retry,omitzero"`
}

// State is the state that a replica publishes in its lease.
type State struct {
	// Takes reports whether the replica may be given slots: it has started, and is not stopping.
	Takes bool `json:"takes,omitempty"`
	// Warm are the slots whose watches have synced; Open are those that it runs.
	Warm slots.Set `json:"warm,omitzero"`
	Open slots.Set `json:"open,omitzero"`
	// Record is the ID of the record that the replica follows: it may run slots of this record, and of no other one.
	Record string `json:"record,omitempty"`
	// Load is the load of the slots, in ms of computing per second.
	Load map[int]int `json:"load,omitempty"`
	// Summary is for people. A change of only the summary is not written at once.
	Summary Summary `json:"summary,omitzero"`
}

// Summary summarizes the controllers of a replica.
type Summary struct {
	// Version is that of the program.
	Version string `json:"version,omitempty"`
	// Controllers is the number of running controllers.
	Controllers int `json:"controllers,omitempty"`
	// Objects is the number of objects of their kinds in the cache; of these, Due wait for a worker, Running are being reconciled, and
	// Failing had a failed last run.
	Objects int `json:"objects,omitempty"`
	Due     int `json:"due,omitempty"`
	Running int `json:"running,omitempty"`
	Failing int `json:"failing,omitempty"`
	// Runs is the number of runs since the start.
	Runs uint64 `json:"runs,omitempty"`
	// Modules are the controllers that replicas share, at most MaxModules.
	Modules map[string]Module `json:"modules,omitempty"`
}

// MaxModules limits the size of a Summary.
const MaxModules = 50

// Module is the state of a shared controller at one replica.
type Module struct {
	// Digest is that of the live module, shortened. Revision is the number that the replica has given to the module. Both are unset for a
	// native reconciler.
	Digest   string `json:"digest,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Paused reports that the replica starts no reconciles of the controller.
	Paused bool `json:"paused,omitempty"`
	// Followed is the generation of Record.Wanted that the replica has followed.
	Followed uint64 `json:"followed,omitempty"`
}

// Lease is the lease of a replica as it was read.
type Lease struct {
	ID      string // of the replica
	Version string // changes with each write
	Lasts   time.Duration
	Ended   bool // fenced
	State   State
	// Seen is when the lease last changed, according to the local clock, or was first read. Heard reports whether it has changed since
	// this replica started: otherwise, its owner may have died long ago. Both are set only in a View.
	Seen  time.Time
	Heard bool
}

// maxRecord limits the size of a record in bytes. The annotations of an object may have 256 KiB.
const maxRecord = 200 << 10

// encode returns the record as text. If it is too long, it omits the failing and the due objects, which are useful but not essential. If it is
// still too long, it omits deletions: without a record that fits, no slot would move again.
func (r *Record) encode() (string, error) {
	b, err := json.Marshal(r)
	short := r
	for _, shorten := range []func(*Handover){
		func(h *Handover) { h.Failing, h.Due = nil, nil },
		func(h *Handover) { h.Deleted = nil },
	} {
		if err != nil || len(b) <= maxRecord {
			break
		}
		short = short.clone()
		for i := range short.Slots {
			for name, h := range short.Slots[i].Handover {
				shorten(&h)
				short.Slots[i].Handover[name] = h
			}
		}
		b, err = json.Marshal(short)
	}
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	return string(b), nil
}

// decodeRecord parses and validates a record.
func decodeRecord(text string) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("record: %w; stop all replicas, and delete the lease", err)
	}
	if r.Version != 0 {
		return nil, fmt.Errorf("record: version %d is of a newer wasmctl: run that version here, too", r.Version)
	}
	if n := len(r.Slots); n < 1 || n > slots.Max {
		return nil, fmt.Errorf("record: %d slots, want 1 to %d; stop all replicas, and delete the lease", n, slots.Max)
	}
	return r, nil
}

// clone returns a copy that can be changed.
func (r *Record) clone() *Record {
	out := *r
	out.Keys, out.Wanted = maps.Clone(r.Keys), maps.Clone(r.Wanted)
	out.Slots = make([]Slot, len(r.Slots))
	for i, s := range r.Slots {
		s.Handover = maps.Clone(s.Handover)
		out.Slots[i] = s
	}
	return &out
}

// give makes a replica the owner of a slot.
func (s *Slot) give(to string, epoch uint64, now time.Time, left map[string]Handover) {
	*s = Slot{Owner: to, Epoch: epoch, Moved: now, Handover: left}
}
