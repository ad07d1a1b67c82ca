// Package logrus is what logrus lacks for wasip1: wasmctl build adds it where a
// program uses that library.
package logrus
