// Package store compares wasmctl's store with controller-runtime's cache, typed
// and unstructured: what reading costs, and what an object takes of memory.
// `make bench BENCH=Store` runs it.
package store
