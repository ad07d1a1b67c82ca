// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/check"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// checkOptions are the flags of check.
type checkOptions struct {
	streams         streams
	name, namespace string
	kubeconfig      flags.Kubeconfig
	registry        flags.Registry
}

func newCmdCheck(s streams) *cobra.Command {
	o := &checkOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "check [HOST/REPOSITORY:TAG]",
		Short: "Check whether a cluster is fit for wasmctl serve",
		Long: `Checks the cluster of the kubeconfig, and changes nothing: the version of Kubernetes, the API groups, your rights to install
wasmctl, the CRDs, and the clock. With a reference, it also checks whether its registry answers from this machine, with your
credentials, and has the module.

The exit code is 0 if wasmctl serve can be installed and works, also with warnings; 1 if a check fails; 4 if the API server does
not answer.`,
		Example: `  wasmctl check
  wasmctl check registry.example/team/webapp:1.0`,
		Args: maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	bindInstallation(cmd, &o.name, &o.namespace)
	o.kubeconfig.Bind(cmd, "Use this kubeconfig `file`")
	o.registry.Bind(f)
	return cmd
}

func (o *checkOptions) run(ctx context.Context, args []string) error {
	var refs []oci.Ref
	for _, arg := range args {
		ref, err := oci.Parse(arg)
		if err != nil {
			return failure.Usage.Wrap(err)
		}
		refs = append(refs, ref)
	}
	crds, err := v1alpha1.CRDObjects()
	if err != nil {
		return err
	}
	c := deploy.Config{Name: o.name, Namespace: o.namespace, Replicas: 2, CRDs: crds, Rights: serveRights(o.namespace)}
	objects, err := c.Unstructured()
	if err != nil {
		return err
	}
	config, err := requestConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	found, err := check.Cluster(ctx, config, objects)
	if err != nil {
		return cmp.Or(admin.ClassOf(err), failure.Cluster).Wrap(err)
	}
	for _, ref := range refs {
		f := check.Finding{Check: "registry", Level: check.OK, Text: "answers, and has " + ref.String()}
		if _, err := o.registry.Client().Resolve(ctx, ref); err != nil {
			f.Level, f.Text = check.Fail, err.Error()
		}
		found = append(found, f)
	}
	return o.report(found)
}

// report prints the findings. It returns an error if a check has failed.
func (o *checkOptions) report(found []check.Finding) error {
	t := tabwriter.NewWriter(o.streams.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "CHECK\tRESULT\tDETAIL") // Flush returns the error
	for _, f := range found {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", f.Check, f.Level, text.Line(f.Text))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(f check.Finding) bool { return f.Level == check.Fail }) {
		return errors.New("the cluster is not fit for wasmctl serve: see DETAIL")
	}
	return nil
}
