// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/subprocess"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// hardened hardens the process, and returns the result for status. It runs after the connection to the
// cluster, because starting a local control plane needs more rights.
func (o *runOptions) hardened(options *wasmctl.Options, c *rest.Config, log *slog.Logger) (string, error) {
	policy := &harden.Policy{AnyFile: true}
	switch {
	case o.process.Harden == harden.Off || o.process.Dev: // the local control plane has files of its own
	case c.ExecProvider != nil:
		log.Info("the plugin of the kubeconfig can use all files and start programs, so this process can, too; to restrict it, use a token or a certificate", "plugin", c.ExecProvider.Command)
	case o.helped() != "":
		log.Info("the credential helper of a registry can use all files and start programs, so this process can, too; to restrict it, use auths in the file or a pull secret", "helper", o.helped())
	default:
		policy = o.files(options)
	}
	subprocess.Prepare()
	state, err := harden.Apply(o.process.Harden, policy)
	if err != nil {
		return "", failure.Usage.Wrap(err)
	}
	log.Debug("hardened the process", "in_force", state.InForce, "missing", state.Missing)
	return state.String(), nil
}

// helped returns the credential helpers of docker or podman if modules come from registries. The
// process starts these helpers again later.
func (o *runOptions) helped() string {
	if !slices.ContainsFunc(o.controllers(), func(c *v1alpha1.ControllerSpec) bool { return c.Module.Image != "" }) {
		return ""
	}
	return strings.Join(flags.Login().Helpers(), ", ")
}

// files returns a policy with the files that the process writes and the programs that it starts. The
// process may read all files, because the file of controllers can name others later.
func (o *runOptions) files(options *wasmctl.Options) *harden.Policy {
	made := append(o.memoDirs(), options.CacheDir, options.StateDir)
	if o.process.Socket != "none" {
		made = append(made, filepath.Dir(cmp.Or(o.process.Socket, admin.DefaultPath(os.Getpid()))))
	}
	p := &harden.Policy{Read: []string{"/"}, Write: []string{os.TempDir(), os.DevNull}, Self: true}
	for _, dir := range made {
		if dir != "" {
			_ = os.MkdirAll(dir, 0o700) // a rule needs an existing directory; if it is missing, later writes report that
			p.Write = append(p.Write, dir)
		}
	}
	for _, c := range o.controllers() {
		if c.AuditFile != "" {
			p.Write = append(p.Write, filepath.Dir(c.AuditFile))
		}
	}
	return p
}
