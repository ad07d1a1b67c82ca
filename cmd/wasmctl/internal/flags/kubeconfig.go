// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig has the flags that select a cluster.
type Kubeconfig struct{ Path, Context string }

// Bind adds the flags to a command. usage is the help of --kubeconfig.
func (k *Kubeconfig) Bind(cmd *cobra.Command, usage string) {
	f := cmd.Flags()
	f.StringVar(&k.Path, "kubeconfig", "", usage)
	f.StringVar(&k.Context, "context", "", "Use this `context` of the kubeconfig")
	_ = cmd.MarkFlagFilename("kubeconfig")
}

// Config returns the configuration of the kubeconfig, which is not read yet.
func (k *Kubeconfig) Config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	rules.WarnIfAllMissing = false
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: k.Context})
}
