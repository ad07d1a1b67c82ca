// Package simulation has no code, only a test: whole controllers in virtual
// time.
package simulation
