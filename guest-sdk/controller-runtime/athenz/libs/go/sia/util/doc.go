// Package util is what Athenz' library lacks for wasip1: wasmctl build adds the other file
// where a program uses that library, as all do that have Pulsar's client.
package util
