// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_rest || !wasip1

package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// libraries is the oldest version of the Kubernetes libraries that a module is
// built with.
const libraries = "v0.34.0"

// serverVersion answers the most frequent request that main makes before it has
// a manager. There may be no API server yet, so the answer is the version of
// the libraries, which also determines the kinds in discovery.
func serverVersion(r *http.Request) *http.Response {
	is := libraries
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/apimachinery" && strings.HasPrefix(m.Version, "v0.") {
				is = m.Version
			}
		}
	}
	is = "v1." + strings.TrimPrefix(is, "v0.")
	minor, _, _ := strings.Cut(strings.TrimPrefix(is, "v1."), ".")
	text, err := json.Marshal(version.Info{Major: "1", Minor: minor, GitVersion: is, Platform: "wasip1/wasm"})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}
