// SPDX-License-Identifier: Apache-2.0

// Package config returns the connection to the API server. In a module, it is
// the host's connection.
package config

import (
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// KubeconfigFlagName is the flag that RegisterFlags registers.
const KubeconfigFlagName = "kubeconfig"

// RegisterFlags registers --kubeconfig, which has no effect in a module.
func RegisterFlags(fs *flag.FlagSet) {
	if fs == nil {
		fs = flag.CommandLine
	}
	if fs.Lookup(KubeconfigFlagName) == nil {
		fs.String(KubeconfigFlagName, "", "has no effect in a module: the host talks to the API server")
	}
}

// GetConfig returns a configuration for managers, and for clients of client-go.
func GetConfig() (*rest.Config, error) { return rest.New(), nil }

// GetConfigWithContext ignores the context and returns the same as GetConfig.
func GetConfigWithContext(string) (*rest.Config, error) { return GetConfig() }

// GetConfigOrDie returns the same as GetConfig.
func GetConfigOrDie() *rest.Config { return rest.New() }
