// Package gocmp has no code. The folder below it has the file that go-cmp has another
// one of in a module.
package gocmp
