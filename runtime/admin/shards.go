// SPDX-License-Identifier: Apache-2.0

package admin

import "time"

// Shards is the assignment of objects to replicas as one replica sees it.
type Shards struct {
	// Replica is the ID of this replica: the name of its Lease.
	Replica string `json:"replica"`
	// Epoch is the number of changes of the record, Slots the number of slots, and Here how
	// many of them this replica runs.
	Epoch uint64 `json:"epoch"`
	Slots int    `json:"slots"`
	Here  int    `json:"here"`
	// States counts all slots by state: here, elsewhere, believed, moving, unowned or double.
	States map[string]int `json:"states"`
	// Coverage describes for people which slots are run. Covered reports whether each slot
	// is run by exactly one replica or moving to one.
	Coverage string `json:"coverage"`
	Covered  bool   `json:"covered"`
	// By is the field that decides the slot of an object, by controller.
	By map[string]string `json:"by,omitempty"`
	// Hints are about slots of this replica with far more objects than others.
	Hints []string `json:"hints,omitempty"`
	// Replicas are the known replicas, ordered by ID.
	Replicas []Replica `json:"replicas"`
	// Modules are the live modules that the live replicas report, ordered by controller. If a controller has
	// several, the replicas run different ones.
	Modules []SharedModule `json:"modules,omitempty"`
}

// SharedModule is a live module of a controller that replicas share.
type SharedModule struct {
	// Controller is the name of the controller, and Digest the beginning of the module's sha256.
	Controller string `json:"controller"`
	Digest     string `json:"digest"`
	// Replicas run the module, ordered by ID.
	Replicas []ModuleAt `json:"replicas"`
}

// ModuleAt is a live module at one replica.
type ModuleAt struct {
	// ID is that of the replica, Revision the number that it has given to the module, and Paused reports that it
	// starts no reconciles of the controller.
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	Paused   bool   `json:"paused,omitempty"`
}

// Replica is the state of a replica according to its Lease.
type Replica struct {
	ID string `json:"id"`
	// Version is the version of wasmctl that it runs.
	Version string `json:"version,omitempty"`
	// State is "takes slots", "takes none" (it starts or stops), "overdue" (its lease is valid, but
	// it has not been heard of lately) or "silent" (its lease has expired).
	State string `json:"state"`
	// Slots counts the slots that it owns, and Open those that it reports as running, which
	// Ranges lists: "0-3,17".
	Slots  int    `json:"slots"`
	Open   int    `json:"open"`
	Ranges string `json:"ranges,omitempty"`
	// Load is the duration of the runs of its slots, in seconds per second.
	Load float64 `json:"load"`
	// Heard is when its Lease changed last; unset if it has not since the answering replica started.
	Heard time.Time `json:"heard,omitzero"`
	// Controllers is the number of running controllers, and Objects that of the objects of
	// their kinds in the cache; Ready of them are due, Running are being reconciled, and
	// Failing had a last run that failed. Runs counts runs since the start.
	Controllers int    `json:"controllers"`
	Objects     int    `json:"objects"`
	Ready       int    `json:"ready"`
	Running     int    `json:"running"`
	Failing     int    `json:"failing"`
	Runs        uint64 `json:"runs"`
}

// Slot is the slot that an object is in.
type Slot struct {
	// Number is the number of the slot, and Of the number of slots; By is the field that
	// decides the slot of an object.
	Number int    `json:"number"`
	Of     int    `json:"of"`
	By     string `json:"by"`
	// State is here, elsewhere, believed, moving, unowned or double; Replicas are those that run the
	// slot or, if none does, its owner.
	State    string   `json:"state"`
	Replicas []string `json:"replicas,omitempty"`
	// Next is the replica that the slot will move to; empty if it stays.
	Next string `json:"next,omitempty"`
	// Epoch and Moved are those of the last change of the owner.
	Epoch uint64     `json:"epoch"`
	Moved *time.Time `json:"moved,omitempty"`
}
