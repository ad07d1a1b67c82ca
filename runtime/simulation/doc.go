// Package simulation plays whole controllers in virtual time, one random story
// per seed. It has no code beside its test; the API server that the stories take
// place on is package apisim.
//
// Real are the watches with client-go below them, the stores, mappers,
// predicates, hooks and triggers, scheduler, runner and its pool, applier and
// controller: one to three controllers of overlapping kinds that share watches
// and workers. Played are the API server, the users, the guests and what the
// host does on a guest's behalf. A story has some dozens of steps: users
// create, change, pause, delete and replace objects, tamper with children and
// change what configs refer to; controllers start late, are elected late, are
// paused, triggered, stopped in order or by force and started again, and get and
// lose watches; guests are slow, fail in every way, and write; the API server is
// late, refuses (403, 404, 410, 429, 500, 503, no connection), forgets its
// history, ends watches in good order, by a reset, in the middle of an event, by
// 410 or 500, stalls, sends events twice, answers lists from the past and in
// pages, and loses answers to writes that it has carried out. Each watch is late
// by its own measure, so that the order of events across watches is any.
//
// # What is checked
//
// While it plays: no key runs twice at once (rule 1), concurrency and pool are kept, a
// free slot is used and a reserved one is available (rule 5), no run before all needed
// watches are listed and mapped, nor before the election (rule 10), attempts count
// runs (18), error_policy is asked once per failed run (19), the guest gets no object
// that is gone or paused (20), no reconcile without the finalizer and no removal
// before a successful finalize (21), a run sees the writes of the one before or is
// notified that it does not (22), a requeue counts from the end of the run (25), a
// hold is kept, and a stop takes no longer than it may (9).
//
// Then the faults end, and virtual time runs until a dumb model has nothing to
// object: the last run of each object saw its last state, or all that its
// predicates care for; it saw the last state of every related object that names
// it, and none that does not; it knows of the deletion or the pause; it
// succeeded, or failed in a way that waits for a change; nothing that was asked
// for by a requeue, a retry or a trigger is open; finalizers are where they
// belong; and the children are what the last run wanted. At the end no watch,
// connection or goroutine is left (15).
//
// The model knows one loss that no level-triggered controller can see: a child
// that came to its owner and was deleted or given away within one gap of a
// watch.
//
// # Playing a seed again
//
//	go test ./runtime/simulation -run 'Seed/1234$' -seed 1234
//
// The story, the faults and how each guest behaves are drawn from the seed
// alone, each from numbers of its own. Not from the seed come the order in which
// the Go scheduler runs what happens at one virtual instant, and the random
// parts of client-go's and our own back-offs and watch timeouts. So a failure
// that needs one of those may take a few tries: add -count=50.
// WASMCTL_SIM_SEEDS sets how many seeds are played.
//
// # Can it fail
//
// Each of these faults in the code under test was put in by hand and found; with it is
// roughly how many seeds fail.
package simulation
