// Package pq is what lib/pq lacks for wasip1, up to version 1.10: wasmctl build adds the other
// file where a program uses that library. Newer versions have it in internal/pqutil.
package pq
