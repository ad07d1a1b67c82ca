// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// serveLease is the name of the Lease of wasmctl serve.
const serveLease = "wasmctl-serve"

// rbacServe are the flags of rbac that are about wasmctl serve.
type rbacServe struct {
	serve       bool
	constrained bool
	as          string // the user to impersonate for the modules; if empty, the host's own rights are printed
}

func (o *rbacServe) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.serve, "serve", false, "Print the rights that wasmctl serve itself needs, to serve all Reconcilers or those of --namespace")
	f.BoolVar(&o.constrained, "constrained-impersonation", false, "With --serve: allow no account to be impersonated as a whole; needs Kubernetes 1.36")
	f.StringVar(&o.as, "as", "", "With --constrained-impersonation: print the rights that wasmctl serve needs to run MODULE as this service account `user`")
}

// validate checks the flags, given the number of modules.
func (o *rbacServe) validate(modules int) error {
	switch {
	case !o.serve && (o.constrained || o.as != ""):
		return errors.New("--constrained-impersonation and --as need --serve")
	case !o.serve && modules == 0:
		return errors.New("MODULE is missing")
	case !o.serve && modules > 1:
		return errors.New("several modules need --serve --constrained-impersonation --as USER")
	case o.serve && (o.as == "") != (modules == 0), o.as != "" && !o.constrained:
		return errors.New("--serve takes no MODULE, or modules with --constrained-impersonation and --as")
	}
	if _, ok := accountOfUser(o.as); o.as != "" && !ok {
		return fmt.Errorf("--as %q: want system:serviceaccount:NAMESPACE:NAME", o.as)
	}
	return nil
}

// accountOfUser returns the service account of a user name.
func accountOfUser(user string) (a grant.Account, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	a.Namespace, a.Name, _ = strings.Cut(rest, ":")
	return a, ok && a.Namespace != "" && a.Name != ""
}

// serveObjects returns the objects that rbac --serve prints.
func (o *rbacOptions) serveObjects(ctx context.Context, modules []string) ([]any, error) {
	host := grant.Account{Namespace: "wasmctl-system", Name: "wasmctl"}
	if o.account != "" {
		host = o.accountOf("")
	}
	if o.serve.as == "" {
		return marked(host, grant.RBAC(host, o.serveRights(host))), nil
	}
	as, _ := accountOfUser(o.serve.as)
	rules, kinds := serve.ModuleReads(as.Namespace), newGuess(&o.process)
	for _, module := range modules {
		o.controller.Module.Set(module)
		least, events, _, err := leastOfAll(ctx, kinds, &o.process.Registry, &o.controller)
		if err != nil {
			return nil, err
		}
		rules = append(append(rules, least.Rules...), events...)
	}
	tellGuessed(o.streams, kinds)
	return marked(host, grant.Impersonation(host, as, rules, serve.ReleaseRules(rules))), nil
}

// marked labels objects as those of the installation that runs as an account.
func marked(host grant.Account, objects []any) []any {
	return deploy.Mark(objects, host.Namespace, host.Name, deploy.ComponentServe)
}

// serveRights returns the rights of the process itself.
func (o *rbacOptions) serveRights(host grant.Account) []abi.Capability {
	rights := append(serve.Rights(o.controller.Namespaces, o.serve.constrained), grant.EventRules(host.Namespace)...)
	return slices.Concat(rights, o.leaseRules(cmp.Or(o.leader.Namespace, host.Namespace), cmp.Or(o.leader.Name, serveLease)), o.webhookRules(host, []string{deploy.AnyCRD}))
}
