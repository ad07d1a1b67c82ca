// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/devcluster/server/cluster"
)

// options are the parsed command line.
type options struct {
	cluster          cluster.Config
	exitOnStdinClose bool
	version          bool
	command          []string // COMMAND ARGS...; if empty, serve until stopped
}

const usageHead = `devcluster runs a Kubernetes control plane for development and tests: etcd,
kube-apiserver with RBAC, and the garbage collector, namespace, service account,
cluster role aggregation and root CA controllers, in one process. No nodes, no
scheduler: pods are stored but never run.

Usage:
  devcluster --data-dir DIR [flags]         serve until SIGINT or SIGTERM
  devcluster [flags] -- COMMAND [ARGS...]   serve while COMMAND runs
  devcluster version                        print the version of Kubernetes

When it is ready it prints one line of JSON to stdout:
  {"url":"https://127.0.0.1:PORT","kubeconfig":"FILE","pid":PID,"version":"vX.Y.Z"}
COMMAND gets KUBECONFIG and DEVCLUSTER_KUBECONFIG in its environment instead.

Examples:
  devcluster --data-dir ~/.cache/devcluster
  devcluster --unsafe-no-fsync -- go test ./...
  devcluster --data-dir d --port 6443 --apiserver-flag=--max-requests-inflight=20

Flags:
`

const usageTail = `
A first SIGINT or SIGTERM stops in order (about a second), a second one at once.
With COMMAND, SIGTERM is passed on to it and a second signal kills it; SIGINT is
not passed on, since a terminal sends it to COMMAND by itself.

Exit codes:
  0    stopped on request
  1    could not start, run or stop
  2    bad flags
  3    the data dir is in use by another process
With COMMAND, its own exit code, or:
  125  the control plane could not start, run or stop
  126  COMMAND cannot be run
  127  COMMAND was not found
  128+N  COMMAND was ended by signal N, or devcluster was before COMMAND began
`

// newFlags binds the flags to o.
func newFlags(o *options) *pflag.FlagSet {
	fs := pflag.NewFlagSet("devcluster", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {} // run prints the usage
	c := &o.cluster
	fs.StringVar(&c.DataDir, "data-dir", "", "`directory` for etcd's data, keys and logs; created if missing. With COMMAND or --exit-on-stdin-close it is optional: the default is a temporary one, removed at the end")
	fs.StringVar(&c.Kubeconfig, "kubeconfig", "", "`file` to write the admin kubeconfig to (default DATA-DIR/kubeconfig)")
	fs.IntVar(&c.Port, "port", 0, "`port` on 127.0.0.1 (default a free one)")
	fs.BoolVar(&c.UnsafeNoFsync, "unsafe-no-fsync", false, "etcd does not sync to disk: faster; data outlives the process but not a crash of the machine")
	fs.BoolVar(&c.NoControllers, "no-controllers", false, "etcd and kube-apiserver only")
	fs.StringArrayVar(&c.APIServerFlags, "apiserver-flag", nil, "one more `flag` of kube-apiserver, as --name=value (may be repeated)")
	fs.BoolVar(&o.exitOnStdinClose, "exit-on-stdin-close", false, "stop when stdin ends, so that a child never outlives its parent")
	fs.IntVar(&c.Verbosity, "v", 0, "log `level` of the servers on stderr (default 0: none; errors go to DATA-DIR/server.log)")
	return fs
}

func helpText() string {
	return usageHead + newFlags(new(options)).FlagUsagesWrapped(100) + usageTail
}

// parse parses the command line. The error is pflag.ErrHelp if help is requested.
func parse(args []string) (options, error) {
	var o options
	fs := newFlags(&o)
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	rest := fs.Args()
	if dash := fs.ArgsLenAtDash(); dash >= 0 {
		rest, o.command = rest[:dash], rest[dash:]
		if len(o.command) == 0 {
			return o, errors.New("no COMMAND after --")
		}
	}
	if len(rest) > 0 {
		switch first := rest[0]; {
		case len(rest) > 1 || len(o.command) > 0 || (first != "version" && first != "help"):
			return o, fmt.Errorf("unexpected argument %q: a COMMAND comes after --", strings.Join(rest, " "))
		case first == "help":
			return o, pflag.ErrHelp
		}
		o.version = true
		return o, nil
	}
	return o, o.check()
}

// check finds invalid combinations.
func (o *options) check() error {
	switch {
	case o.cluster.DataDir == "" && len(o.command) == 0 && !o.exitOnStdinClose:
		return errors.New("--data-dir is required")
	case o.exitOnStdinClose && len(o.command) > 0:
		return errors.New("--exit-on-stdin-close cannot be used with a COMMAND, which owns stdin")
	case o.cluster.Port < 0 || o.cluster.Port > 65535:
		return fmt.Errorf("--port %d is not between 0 and 65535", o.cluster.Port)
	case o.cluster.Verbosity < 0:
		return fmt.Errorf("--v %d is below 0", o.cluster.Verbosity)
	}
	for _, f := range o.cluster.APIServerFlags {
		if !strings.HasPrefix(f, "--") {
			return fmt.Errorf("--apiserver-flag %q does not look like --name=value", f)
		}
	}
	return nil
}
