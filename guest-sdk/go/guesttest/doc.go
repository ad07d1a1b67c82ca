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
// Host.Reconcile makes one run of one object. Host.Run makes all runs that a
// host would make until nothing is left to do. It maps changes to objects by
// Owns, Watches, mappers and filters. It fails the test if the reconciler never
// rests. Host.Edit, Delete, Add and Remove change the cluster between runs.
// Host.Advance moves the clock to the next requeue.
//
// # Behavior like wasmctl
//
// The Host implements attempts, ErrorPolicy and the effect of each class of
// error; the finalizer before the first run and after the cleanup; and
// children, pruning and status of a result, with their checks and in their
// order. It implements the cache with the watched kinds, their namespaces and
// label selectors, and nothing else; events; settings; and capabilities. It
// denies a call that the manifest does not allow.
//
// Objects run one at a time, predicates hide nothing, and the cache never lags
// behind.
//
// # Behavior like the API server
//
// The Host implements names and namespaces; uid, resourceVersion, generation
// and creationTimestamp; conflicts of resourceVersion, uid and preconditions;
// and the status as a subresource, which other writes leave alone. It
// implements dry-run; finalizers and deletionTimestamp; label selectors and
// pages of lists; merge patch and JSON patch; and one controller per object. A
// write that changes nothing is not a write. Host.Run also removes objects
// whose owners are gone, as the garbage collector does.
//
// Server-side apply merges maps by key, and the lists ownerReferences,
// conditions, containers, env, ports and volumes by their keys. Every other
// list is one value. The Host records which manager applied which field. It
// removes fields that a manager leaves out, and reports fields that another
// manager applied as a conflict. Writers other than Apply own nothing.
//
// # What the Host does not do
//
// The Host has no schemas: it defaults, checks and prunes nothing. Every kind
// has a status subresource. A kind is namespaced unless it is a known
// cluster-scoped one or Host.ClusterScoped was called. The Host has no
// admission, RBAC, other controllers, strategic patches or other subresources;
// a call that needs one of the last two returns an error that says so. The Host
// guesses the plural of a kind.
package guesttest
