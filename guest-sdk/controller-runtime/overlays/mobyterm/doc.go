// Package term replaces the files of github.com/moby/term, which does not compile for wasip1.
// Programs ask it for the width of the terminal, for the text of --help.
package term
