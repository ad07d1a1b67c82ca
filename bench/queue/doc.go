// Package queue compares wasmctl's scheduler and runner with what native
// controllers queue their objects with: client-go's workqueue and
// controller-runtime's priority queue. `make bench BENCH=Queue` runs it.
package queue
