// Package term has no code that is used natively. wasmctl build puts its other file
// into github.com/moby/term, which does not build for wasip1: programs ask it for the
// width of the terminal, for the text of --help.
package term
