package main

import (
	"errors"
	"fmt"
	"strings"
)

// Exit codes; README.md has the same table.
const (
	exitOK      = 0
	exitError   = 1  // anything that has no code of its own
	exitUsage   = 2  // a flag or an argument is wrong
	exitModule  = 3  // the module cannot be loaded, or is at fault
	exitCluster = 4  // no cluster is configured, or the local one does not start or ends by itself
	exitKind    = 5  // a kind is not known to the API server
	exitDenied  = 6  // the API server does not allow the watches, or does not accept the credentials
	exitForced  = 7  // stopped by force: running reconciles were interrupted
	exitLost    = 8  // the lease was lost
	exitListen  = 9  // an address cannot be listened on
	exitDiffers = 10 // what was compared differs
)

var exitCodes = []struct {
	code int
	text string
}{
	{exitOK, "done, or stopped in an orderly way by a signal"},
	{exitError, "an error that has no code of its own"},
	{exitUsage, "a flag or an argument is wrong"},
	{exitModule, "the module cannot be loaded, or validate has found it at fault; wasmctl inspect says why"},
	{exitCluster, "no cluster is configured, or the local one does not start or ends by itself"},
	{exitKind, "a kind is not known to the API server, or its name is ambiguous"},
	{exitDenied, "the API server does not allow the watches, or does not accept the credentials; or nobody has granted the module what it asks for"},
	{exitForced, "stopped by force: reconciles were interrupted"},
	{exitLost, "the lease of --leader-elect was lost to another replica, or could not be renewed"},
	{exitListen, "the address of --metrics-address or --health-address is in use, or cannot be listened on"},
	{exitDiffers, "wasmctl shadow has found differences"},
}

// exitTable returns the exit codes as help shows them.
func exitTable() string {
	var b strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, e.text)
	}
	return b.String()
}

// codedError is an error that knows its exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// withCode gives err an exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// exitCode returns the code of the innermost codedError.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitError
	for e := (*codedError)(nil); errors.As(err, &e); err = e.err {
		code = e.code
	}
	return code
}
