// Command devcluster is a Kubernetes control plane for development and tests:
// etcd, kube-apiserver and the controllers that matter, in one process, on one
// port of 127.0.0.1. See README.md one folder up.
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

// Exit codes. With a COMMAND, its own exit code is passed on, so ours are the
// ones that env(1), timeout(1) and the shells use.
const (
	exitOK        = 0
	exitFailure   = 1 // could not start, run or stop
	exitUsage     = 2 // bad flags
	exitDataInUse = 3 // another process holds the data dir

	exitCommandNoCluster  = 125 // COMMAND was not run, or lost its control plane
	exitCommandCannotRun  = 126 // COMMAND was found but cannot be run
	exitCommandNotFound   = 127
	exitCommandSignalBase = 128 // plus the number of the signal that ended COMMAND
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the whole program; it returns the exit code.
func run(args []string) int {
	// A parent that dies closes our stdout and stderr. Without this the next
	// line we print would kill us in the middle of an orderly stop. Notify, and
	// not Ignore, because a COMMAND would inherit what is ignored.
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

// say prints one line for a human.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "devcluster: "+format+"\n", args...)
}
