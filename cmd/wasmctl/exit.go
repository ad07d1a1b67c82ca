// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Exit codes; docs/exit-codes.md has the same table.
const (
	exitOK       = 0
	exitError    = 1  // an error without an exit code of its own
	exitUsage    = 2  // invalid flag or argument
	exitModule   = 3  // the module cannot be loaded, or failed a check
	exitCluster  = 4  // no cluster is configured or answers, or the local one did not start or exited
	exitKind     = 5  // the API server does not know a kind
	exitDenied   = 6  // the API server or the grant denies access
	exitForced   = 7  // forced stop: running reconciles were interrupted
	exitLost     = 8  // the lease was lost
	exitListen   = 9  // cannot listen on an address
	exitDiffers  = 10 // wasmctl shadow found differences
	exitRegistry = 11 // the registry does not answer, or not yet
)

var exitCodes = []struct {
	code  int
	class failure.Class
	text  string
}{
	{exitOK, "", "success, or an orderly stop after a signal"},
	{exitError, "", "an error without an exit code of its own"},
	{exitUsage, failure.Usage, "invalid flag or argument"},
	{exitModule, failure.Module, "the module cannot be loaded, or failed validation or probation; wasmctl inspect lists its problems. wasmctl import: an operator will not work as a module"},
	{exitCluster, failure.Cluster, "no cluster is configured, nothing answers a command (no API server, or no process of wasmctl), or the local control plane did not start, or exited"},
	{exitKind, failure.Kind, "the API server does not know a kind, or a kind's name is ambiguous"},
	{exitDenied, failure.Denied, "access denied: the API server denies a request, the watches or the credentials, a registry denies access, no grant covers the module's request, or the controller requires a signature that the module lacks"},
	{exitForced, failure.Forced, "forced stop: running reconciles were interrupted"},
	{exitLost, failure.Lost, "the lease of --leader-elect or --shards was lost to another replica, or could not be renewed, or another group of replicas runs the same objects"},
	{exitListen, failure.Listen, "--metrics-address, --health-address or --webhook-address cannot be listened on, for example because the port is in use"},
	{exitDiffers, failure.Differs, "wasmctl shadow found differences"},
	{exitRegistry, failure.Registry, "the registry cannot be used, or not yet: it does not answer, or its certificate is not trusted"},
}

// exitTable returns the table of exit codes for help texts.
func exitTable() string {
	var b strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, e.text)
	}
	return b.String()
}

// exitCode returns the code of the innermost class of err.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	class := admin.ClassOf(err)
	for _, e := range exitCodes {
		if class != "" && e.class == class {
			return e.code
		}
	}
	return exitError
}
