// SPDX-License-Identifier: Apache-2.0

// Package store compares wasmctl's store with controller-runtime's cache, typed and unstructured: the cost of reading, and the memory per
// object. `make bench BENCH=Store` runs it.
package store
