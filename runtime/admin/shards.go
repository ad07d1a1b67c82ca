package admin

import "time"

// Shards is what a replica that shares the objects with others knows of them.
type Shards struct {
	// Replica is the ID of this one: the name of its Lease.
	Replica string `json:"replica"`
	// Epoch is how often the record has changed, Slots how many slots there are, Here
	// how many of them this replica runs.
	Epoch uint64 `json:"epoch"`
	Slots int    `json:"slots"`
	Here  int    `json:"here"`
	// States counts all slots by state: here, elsewhere, moving, unowned or double.
	States map[string]int `json:"states"`
	// Coverage says in words what is run and what is not. Covered says that each slot
	// is run by one replica, or on its way to one.
	Coverage string `json:"coverage"`
	Covered  bool   `json:"covered"`
	// By says what the objects of each controller are in a slot by.
	By map[string]string `json:"by,omitempty"`
	// Replicas are those that are known, ordered by ID.
	Replicas []Replica `json:"replicas"`
}

// Replica is what one replica says of itself in its Lease.
type Replica struct {
	ID string `json:"id"`
	// State is "takes slots", "takes none" (it starts or stops) or "silent" (its lease
	// is over).
	State string `json:"state"`
	// Slots counts those that it owns, Open those that it says that it runs, which
	// are named in Ranges: "0-3,17".
	Slots  int    `json:"slots"`
	Open   int    `json:"open"`
	Ranges string `json:"ranges,omitempty"`
	// Load is how long the runs of its slots take, in seconds a second.
	Load float64 `json:"load"`
	// Heard is when its Lease changed last.
	Heard time.Time `json:"heard"`
	// Controllers run, Objects of their kinds are in the cache; Ready of them are due,
	// Running are reconciled, Failing have a last run that failed. Runs counts since
	// the start.
	Controllers int    `json:"controllers"`
	Objects     int    `json:"objects"`
	Ready       int    `json:"ready"`
	Running     int    `json:"running"`
	Failing     int    `json:"failing"`
	Runs        uint64 `json:"runs"`
}

// Slot is the slot that an object is in.
type Slot struct {
	// Number is one of Of, which is the number of slots; By says what objects are in a
	// slot by.
	Number int    `json:"number"`
	Of     int    `json:"of"`
	By     string `json:"by"`
	// State is here, elsewhere, moving, unowned or double; Replicas are those that run
	// the slot, or, where none does, its owner.
	State    string   `json:"state"`
	Replicas []string `json:"replicas,omitempty"`
	// Next is the replica that it is to go to; empty: it stays.
	Next string `json:"next,omitempty"`
	// Epoch and Moved are of the last change of the owner.
	Epoch uint64     `json:"epoch"`
	Moved *time.Time `json:"moved,omitempty"`
}
