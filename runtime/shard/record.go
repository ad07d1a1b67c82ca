package shard

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Record says who runs which slot. All replicas share one, which is changed by
// compare and swap alone.
type Record struct {
	// Epoch counts the changes.
	Epoch uint64 `json:"epoch"`
	// Keys say what the objects of each controller are in a slot by: slots.UID or
	// slots.Namespace. The first replica that runs a controller decides.
	Keys map[string]string `json:"keys,omitempty"`
	// Balanced names the replicas that the slots were spread over last.
	Balanced string `json:"balanced,omitempty"`
	Slots    []Slot `json:"slots"`
}

// Slot is a part of the objects.
type Slot struct {
	// Owner is the replica that runs the objects; only itself can give them to
	// another while its lease lasts. Empty: nobody does.
	Owner string `json:"owner,omitempty"`
	// Next is the replica that the owner is to give the slot to; empty: none.
	Next string `json:"next,omitempty"`
	// Epoch and Moved are of the last change of the owner. Moved is for people.
	Epoch uint64    `json:"epoch,omitempty"`
	Moved time.Time `json:"moved,omitzero"`
	// Handover is what the owner before has left, by controller. Where it has nothing
	// of a controller, what the owner before wrote last is not known: it died.
	Handover map[string]Handover `json:"handover,omitempty"`
}

// Handover is what the owner of a slot leaves to the next one.
type Handover struct {
	// Writes are the last ones: the next owner waits until its cache has them.
	Writes []Write `json:"writes,omitempty"`
	// Failing are the objects whose last runs have failed.
	Failing []Failing `json:"failing,omitempty"`
	// Deleted are objects that are gone, and whose deletion no run has seen yet.
	Deleted []abi.Key `json:"deleted,omitempty"`
}

// Write is a write of a run, as far as a cache can show it.
type Write struct {
	Group           string            `json:"group,omitempty"`
	Resource        string            `json:"resource"`
	Key             abi.Key           `json:"key"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Deleted         bool              `json:"deleted,omitempty"`
}

// Failing is an object whose last runs have failed.
type Failing struct {
	Key     abi.Key   `json:"key"`
	UID     string    `json:"uid,omitempty"`
	Attempt int       `json:"attempt"`
	Since   time.Time `json:"since"`
	// Retry is when the next run is due.
	Retry time.Time `json:"retry,omitzero"`
}

// State is what a replica says of itself in its lease.
type State struct {
	// Takes says that it may be given slots: it has started, and does not stop.
	Takes bool `json:"takes,omitempty"`
	// Warm are the slots whose watches have synced, Open those that it runs.
	Warm slots.Set `json:"warm,omitzero"`
	Open slots.Set `json:"open,omitzero"`
	// Load is what slots cost, in ms of computing a second.
	Load map[int]int `json:"load,omitempty"`
	// Summary is for people. It alone is no reason to write the lease.
	Summary Summary `json:"summary,omitzero"`
}

// Summary is how the controllers of a replica do.
type Summary struct {
	// Controllers counts those that run.
	Controllers int `json:"controllers,omitempty"`
	// Objects of their kinds are in the cache; Due of them wait for a worker, Running
	// are reconciled, Failing have a last run that failed.
	Objects int `json:"objects,omitempty"`
	Due     int `json:"due,omitempty"`
	Running int `json:"running,omitempty"`
	Failing int `json:"failing,omitempty"`
	// Runs counts since the start.
	Runs uint64 `json:"runs,omitempty"`
}

// Lease is the lease of a replica as it was read.
type Lease struct {
	ID      string // of the replica
	Version string // changes with each write
	Lasts   time.Duration
	Ended   bool // fenced off
	State   State
	// Heard is when it changed last, by the own clock; in a View only.
	Heard time.Time
}

// maxRecord bounds a record in bytes. Annotations of an object may have 256 KiB.
const maxRecord = 200 << 10

// encode returns the record as text. Where it is too long, it leaves out what is only
// useful: which objects were failing.
func (r *Record) encode() (string, error) {
	b, err := json.Marshal(r)
	if err == nil && len(b) > maxRecord {
		short := r.clone()
		for i := range short.Slots {
			for name, h := range short.Slots[i].Handover {
				h.Failing = nil
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

// decodeRecord reads a record. The error says what is wrong with it.
func decodeRecord(text string) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if n := len(r.Slots); n < 1 || n > slots.Max {
		return nil, fmt.Errorf("record: %d slots, want 1 to %d", n, slots.Max)
	}
	return r, nil
}

// clone returns a copy that can be changed.
func (r *Record) clone() *Record {
	out := *r
	out.Keys = maps.Clone(r.Keys)
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
