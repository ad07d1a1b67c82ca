// Package guesttest runs a reconciler in a plain go test: without WebAssembly,
// and without a cluster. A Host stands in for wasmctl and for the API server
// behind it, and calls the reconciler by the same messages.
//
//	func TestReconcile(t *testing.T) {
//		host := guesttest.New(t, greeting)
//		result := host.Reconcile(reconciler, ref)
//		...
//	}
//
// # What it does as the API server does
//
// Names and namespaces; uid, resourceVersion, generation and creationTimestamp;
// a write that changes nothing is none; conflicts of resourceVersion, uid and
// preconditions; the status as a subresource, which other writes leave alone;
// dry-run; finalizers and deletionTimestamp; label selectors and pages of lists;
// merge patch and JSON patch; one controller per object; and capabilities: a
// call that the manifest does not allow is denied.
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
// Host.ClusterScoped was called. Admission, RBAC, the garbage collector, other
// controllers, strategic patches and other subresources are not there; a call
// that needs one of the last two says so. The plural of a kind is guessed.
package guesttest
