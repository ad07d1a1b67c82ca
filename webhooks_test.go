// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestReplicaName_IsThatOfOneProcess: two processes on one host differ, and a process that is started again has its name again.
func TestReplicaName_IsThatOfOneProcess(t *testing.T) {
	names := map[string]string{}
	for _, address := range []string{"127.0.0.1:9443", "127.0.0.1:9444", "127.0.0.2:9443", "[::]:9445", "0.0.0.0:9446", "[::1]:9443"} {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		name := replicaName(a)
		if other, taken := names[name]; taken || name != replicaName(a) || len(validation.IsConfigMapKey(name)) > 0 {
			t.Errorf("%s has the name %s, as %q", address, name, other)
		}
		names[name] = address
	}
}
