// Package config returns the connection to the API server. In a module there is
// none: the host talks to the API server.
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

// GetConfig returns a configuration that only a Manager can use.
func GetConfig() (*rest.Config, error) { return &rest.Config{}, nil }

// GetConfigWithContext returns the same whatever the context.
func GetConfigWithContext(string) (*rest.Config, error) { return GetConfig() }

// GetConfigOrDie returns the same as GetConfig.
func GetConfigOrDie() *rest.Config { return &rest.Config{} }
