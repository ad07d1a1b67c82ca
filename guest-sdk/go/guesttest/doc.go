// SPDX-License-Identifier: Apache-2.0

// Package guesttest runs a reconciler in a plain go test: without WebAssembly,
// and without a cluster. A Host replaces wasmctl and the API server behind it,
// and calls the reconciler with the same messages.
//
//	func TestReconcile(t *testing.T) {
//		host := guesttest.New(t, greeting)
//		host.Run(reconciler)
//		...
//	}
//
// Host.Reconcile runs the reconciler once, for one object. Host.Run runs it as
// often as a host would, until no work is left. It maps changes to objects by
// Owns, Watches, mappers and filters. It fails the test if the reconciler never
// stops changing objects. Host.Edit, Delete, Add and Remove change the cluster
// between runs. Host.Advance moves the clock to the next requeue.
//
// # Behavior like wasmctl
//
// The Host implements attempts, ErrorPolicy and the effect of each class of
// error; the finalizer before the first run and after the cleanup; and
// children, pruning and status of a result, with their checks and in their
// order. Its cache has only the watched kinds, in their namespaces and with
// their label selectors. It implements events, settings and capabilities, and
// denies a call that the manifest does not allow.
//
// Objects run one at a time, predicates are ignored, and the cache is always up
// to date.
//
// # Behavior like the API server
//
// The Host implements names and namespaces; uid, resourceVersion, generation
// and creationTimestamp; conflicts of resourceVersion, uid and preconditions;
// and the status as a subresource, which other writes do not change. It
// implements dry-run; finalizers and deletionTimestamp; label selectors and
// pages of lists; merge patch and JSON patch; and the rule that an object has
// at most one controller. A write without a change is not stored. Host.Run also
// removes objects whose owners are gone, as the garbage collector does.
//
// Server-side apply merges maps by key, and the lists ownerReferences,
// conditions, containers, env, ports and volumes by their keys. Every other
// list is one value. The Host records which manager applied which field. It
// removes fields that a manager no longer applies, and reports a conflict for
// fields that another manager applied. Writers other than Apply own no fields.
//
// # Limitations
//
// The Host has no schemas: it sets no defaults, and neither validates nor
// removes fields. Every kind has a status subresource. A kind is namespaced
// unless it is a known cluster-scoped one or Host.ClusterScoped was called. The
// Host has no admission, RBAC, other controllers, strategic patches or other
// subresources; a call that needs one of the last two returns an error that
// names it. The Host guesses the plural of a kind.
package guesttest
