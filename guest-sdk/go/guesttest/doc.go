// Package guesttest runs a reconciler in a plain go test: without WebAssembly,
// and without a cluster. A Host stands in for wasmctl and for the API server
// behind it, and calls the reconciler by the same messages.
//
//	func TestReconcile(t *testing.T) {
//		host := guesttest.New(t, greeting)
//		host.Run(reconciler)
//		...
//	}
//
// Host.Reconcile makes one run of one object. Host.Run makes all that a host
// would make until nothing is left to do: it follows changes to the objects that
// they concern, by Owns, Watches, mappers and filters, and fails a reconciler
// that never rests. Host.Edit, Delete, Add and Remove change the cluster between
// runs, and Host.Advance moves the clock to the next requeue.
//
// # What it does as wasmctl
//
// Attempts, ErrorPolicy and what follows from each class of error; the finalizer
// before the first run and after the cleanup; children, pruning and status of a
// result, with their checks and in their order; the cache, with the kinds that
// are watched, their namespaces and label selectors, and nothing else; events;
// settings; and capabilities: a call that the manifest does not allow is denied.
// Objects are run one at a time, predicates hide nothing, and the cache never
// lags behind.
//
// # What it does as the API server
//
// Names and namespaces; uid, resourceVersion, generation and creationTimestamp;
// a write that changes nothing is none; conflicts of resourceVersion, uid and
// preconditions; the status as a subresource, which other writes leave alone;
// dry-run; finalizers and deletionTimestamp; label selectors and pages of lists;
// merge patch and JSON patch; one controller per object. Host.Run also removes
// objects whose owners are gone, as the garbage collector does.
//
// Server-side apply merges maps by key, and the lists ownerReferences,
// conditions, containers, env, ports and volumes by theirs; every other list is
// one value. It knows which manager applied which field: fields that a manager
// leaves out are removed, and fields that another one applied are a conflict.
// Writers other than Apply own nothing.
//
// # What it does not do
//
// It has no schemas: nothing is defaulted, checked or pruned, and every kind has
// a status subresource and is in a namespace unless it is a known one or
// Host.ClusterScoped was called. Admission, RBAC, other controllers, strategic
// patches and other subresources are not there; a call that needs one of the
// last two says so. The plural of a kind is guessed.
package guesttest
