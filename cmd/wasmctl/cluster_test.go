// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// TestRequestConfig_BoundsRequests: an API server that accepts connections, but does not answer, must not stop a command for ever.
func TestRequestConfig_BoundsRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"kind":"Config","apiVersion":"v1","clusters":[{"name":"a","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := requestConfig(flags.Kubeconfig{Path: path})
	if err != nil || config.Timeout != requestLimit {
		t.Errorf("%v, %v", config, err)
	}
	if _, err := requestConfig(flags.Kubeconfig{Path: path, Context: "b"}); !errors.Is(err, failure.Cluster) {
		t.Errorf("an unknown context: %v", err)
	}
}
