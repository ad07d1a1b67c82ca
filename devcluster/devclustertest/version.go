// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/wasmctl/wasmctl/devcluster"
)

// AtLeast reports whether the control plane has at least the given Kubernetes version, such as "1.34". Tests of newer features skip
// otherwise, or expect less.
func AtLeast(t testing.TB, c *devcluster.Cluster, least string) bool {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.MustParseGeneric(info.GitVersion).AtLeast(version.MustParseGeneric(least))
}
