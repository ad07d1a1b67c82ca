// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"testing"

	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// A native program, for example a test, gets client-go's type, for every
// context.
func TestGetConfig_IsClientGosNatively(t *testing.T) {
	if host := func(c *rest.Config) string { return c.Host }(config.GetConfigOrDie()); host == "" {
		t.Error("no configuration")
	}
	if _, err := config.GetConfigWithContext("other"); err != nil {
		t.Error(err)
	}
}

// The flag can be registered twice, for example by a package and by the
// program.
func TestRegisterFlags_Twice(t *testing.T) {
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	config.RegisterFlags(fs)
	config.RegisterFlags(fs)
	if err := fs.Parse([]string{"-kubeconfig", "x"}); err != nil {
		t.Error(err)
	}
}
