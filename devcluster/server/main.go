// SPDX-License-Identifier: Apache-2.0

// Command devcluster is a Kubernetes control plane for development and tests: etcd, kube-apiserver and the important controllers, in one
// process, on one port of 127.0.0.1. See README.md in the parent directory.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/devcluster/server/cluster"
)

// Exit codes. With a COMMAND, its own exit code is passed on, so the others are those of env(1), timeout(1) and shells.
const (
	exitOK        = 0
	exitFailure   = 1 // could not start, run or stop
	exitUsage     = 2 // bad flags
	exitDataInUse = 3 // another process uses the data dir

	exitCommandNoCluster  = 125 // COMMAND was not run, or its control plane ended
	exitCommandCannotRun  = 126 // COMMAND was found but cannot be run
	exitCommandNotFound   = 127
	exitCommandSignalBase = 128 // plus the number of the signal that ended COMMAND
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the complete program; it returns the exit code.
func run(args []string) int {
	// A parent that dies closes our stdout and stderr. Without this call, printing the next line would kill us in the middle of a graceful
	// stop. Notify is used instead of Ignore because a COMMAND would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	opts, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Print(helpText())
		return exitOK
	case err != nil:
		fmt.Fprintf(os.Stderr, "devcluster: %v\nRun 'devcluster --help' for usage.\n", err)
		return exitUsage
	case opts.version:
		fmt.Println("devcluster", cluster.Version())
		return exitOK
	case len(opts.command) > 0:
		return runCommand(opts)
	}
	return serve(opts)
}

// say prints one line for people.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "devcluster: "+format+"\n", args...)
}
