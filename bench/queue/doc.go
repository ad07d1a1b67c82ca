// SPDX-License-Identifier: Apache-2.0

// Package queue compares wasmctl's scheduler and runner with the queues of native controllers: client-go's workqueue and
// controller-runtime's priority queue. `make bench BENCH=Queue` runs it.
package queue
