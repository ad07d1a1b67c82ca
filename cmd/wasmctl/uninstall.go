// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/uninstall"
)

// uninstallOptions are the flags of uninstall.
type uninstallOptions struct {
	removal    uninstall.Options
	kubeconfig flags.Kubeconfig
}

func newCmdUninstall(s streams) *cobra.Command {
	o := &uninstallOptions{removal: uninstall.Options{Out: s.out, Progress: s.progress}}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove wasmctl serve, or the controllers of a file, from a cluster",
		Long: `Removes the objects of wasmctl manifests, of its chart, or of wasmctl install from a cluster. It finds them by their labels, and
starts from any state: also if some of them are gone already, or if their deletion waits, because no process runs that could end it.

Reconcilers and ClusterReconcilers are deleted first. While a process serves them, the command waits until their modules have
finalized their objects, as their deletionPolicy demands. If no process serves them any more, the command takes the finalizers
off itself, and nothing is cleaned up. Then it deletes the Deployment and what belongs to it, the webhook configurations that a killed
process has left, the rights, and at last the CRDs. If another installation of wasmctl serve exists, the Reconcilers and the CRDs stay.
If nothing of the installation exists, Reconcilers that are in use are deleted only with --force, because the name may be wrong.

The namespace stays, as do the objects that modules have created. The last lines of the output list them.

The command sees processes of the installation, but not a wasmctl serve that runs elsewhere: stop that first.

The exit code is 0 if everything is gone; 1 if something is left after --timeout; 2 if the name is probably wrong; 6 without the
rights, which are those of an administrator of the cluster.`,
		Example: `  wasmctl uninstall --dry-run
  wasmctl uninstall

  # Do not wait for cleanups that fail
  wasmctl uninstall --force`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.removal.Timeout <= 0 {
				return usageError(cmd, fmt.Errorf("--timeout %v: want more than 0", o.removal.Timeout))
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	bindInstallation(cmd, &o.removal.Name, &o.removal.Namespace)
	f.BoolVar(&o.removal.DryRun, "dry-run", false, "Only print what would be done, in order")
	f.BoolVar(&o.removal.Force, "force", false, "Stop the processes first, and take the finalizers off without any cleanup")
	f.DurationVar(&o.removal.Timeout, "timeout", 5*time.Minute, "Wait for each step for at most this long")
	o.kubeconfig.Bind(cmd, "Use this kubeconfig `file`")
	return cmd
}

// bindInstallation adds the flags that identify an installation.
func bindInstallation(cmd *cobra.Command, name, namespace *string) {
	cmd.Flags().StringVar(name, "name", "wasmctl", "The `name` of the installation, as for wasmctl manifests")
	cmd.Flags().StringVarP(namespace, "namespace", "n", "wasmctl-system", "The `namespace` of the installation")
}

func (o *uninstallOptions) run(ctx context.Context) error {
	config, err := requestConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	removal, err := uninstall.New(config, o.removal)
	if err != nil {
		return err
	}
	return removal.Run(ctx)
}
