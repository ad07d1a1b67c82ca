// Package examples holds the test that is common to the examples, each of which
// is a module in a folder of its own: see their README.md.
package examples
