// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/wasmctl/wasmctl/internal/logging"
)

// quietLibraries demotes the log of client-go to the debug level, because watches report the problems
// that matter to users themselves.
func quietLibraries(logger *slog.Logger) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetSlogLogger(slog.New(logging.Demote(logger.Handler())))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}
