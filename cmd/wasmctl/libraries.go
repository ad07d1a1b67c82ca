package main

import (
	"io"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/wasmctl/wasmctl/internal/logging"
)

// quietLibraries sends what client-go logs to the debug level: what a user
// needs to know of it, the watches say themselves.
func quietLibraries(logger *slog.Logger) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetSlogLogger(slog.New(logging.Demote(logger.Handler())))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}
