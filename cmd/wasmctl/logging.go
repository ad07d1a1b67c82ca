package main

import (
	"fmt"
	"io"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// logFormats are the values of --log-format.
var logFormats = []string{"text", "json"}

// newLogger returns a logger that writes lines for a terminal or for a
// collector.
func newLogger(w io.Writer, format string, verbosity int) (*slog.Logger, error) {
	level := slog.LevelInfo
	if verbosity > 0 {
		level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(leveled{newConsole(w, allLevels), level}), nil
	case "json":
		return slog.New(leveled{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: allLevels}), level}), nil
	}
	return nil, fmt.Errorf("--log-format %q: want one of %v", format, logFormats)
}

// quietLibraries sends what client-go logs to the debug level: what a user
// needs to know of it, the watches say themselves.
func quietLibraries(logger *slog.Logger) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetSlogLogger(slog.New(&demoted{logger.Handler()}))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}
