// SPDX-License-Identifier: Apache-2.0

// Package simulation runs whole controllers in virtual time, with one random scenario per seed. It contains only tests; the API server of the
// scenarios is package memapi.
//
// Real are the watches with client-go below them, the stores, mappers, predicates, hooks and triggers, scheduler, runner and its pool, applier
// and controller: one to three controllers of overlapping kinds that share watches and workers. Simulated are the API server, the users, the
// guests, and what the host does on behalf of a guest. A scenario has some dozens of steps: users create, change, pause, delete and replace
// objects, tamper with children, and change objects that configs refer to; controllers start late, are elected late, are paused, triggered,
// stopped gracefully or by force and started again, and gain and lose watches; guests are slow, fail in every way, and write; the API server is
// slow, returns errors (403, 404, 410, 429, 500, 503, no connection), forgets its history, ends watches normally, by a reset, in the middle of
// an event, by 410 or 500, stalls, sends events twice, returns lists that are outdated or in pages, and loses responses to writes that it has
// carried out. Each watch has its own delay, so that events of different watches come in any order.
//
// # What is checked
//
// During the scenario: no key runs twice at once (rule 1); concurrency and pool are respected, a free slot is used and a reserved one is
// available (rule 5); no run starts before all required watches are listed and mapped, nor before the election (rule 10); attempts count runs
// (18); error_policy is called once per failed run (19); the guest gets no object that is gone or paused (20); there is no reconcile without
// the finalizer, and it is not removed before a successful finalize (21); a run sees the writes of the previous one or is told that it does
// not (22); a requeue counts from the end of the run (25); delays are respected; and a stop takes no longer than allowed (9).
//
// Then the faults end, and virtual time runs until a simple model is satisfied: the last run of each object saw its last state, or everything
// that its predicates select; it saw the last state of every related object that names it, and of no other; it knows of the deletion or the
// pause; it succeeded, or failed in a way that waits for a change; no requeue, retry or trigger is pending; finalizers are where they belong;
// and the children are those that the last run wanted. At the end no watch, connection or goroutine is left (15).
//
// The model tolerates one loss that no level-triggered controller can detect: a child that came to its owner and was deleted or given away
// within one gap of a watch.
//
// # Repeating a seed
//
//	go test ./runtime/simulation -run 'Seed/1234$' -seed 1234
//
// The scenario, the faults and the behavior of each guest depend only on the seed, each on its own random numbers. The following do not: the
// order in which the Go scheduler runs goroutines at one virtual instant, and the random parts of client-go's and our own back-offs and watch
// timeouts. A failure that depends on one of those may therefore take several attempts: add -count=50. WASMCTL_SIM_SEEDS sets the number of
// seeds.
//
// # Can it fail
//
// Each of these faults was put into the code under test by hand and was found; the number is roughly how many seeds fail.
package simulation
