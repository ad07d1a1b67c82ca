// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// newExporter returns an exporter of traces to the OTLP endpoint of the flag or of OpenTelemetry's
// environment variables. It returns nil if there is no endpoint.
func newExporter(ctx context.Context, endpoint string, log *slog.Logger) (sdktrace.SpanExporter, error) {
	if endpoint == "" && !tracesInEnv() {
		return nil, nil //nolint:nilnil // traces are off
	}
	if p := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		log.Warn("ignoring OTEL_EXPORTER_OTLP_PROTOCOL; sending traces as http/protobuf", "protocol", p)
	}
	var opts []otlptracehttp.Option
	if endpoint != "" {
		where, err := tracesURL(endpoint)
		if err != nil {
			return nil, err
		}
		opts = append(opts, otlptracehttp.WithEndpointURL(where))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("cannot send traces; some are lost", "error", err.Error()) }))
	return exporter, nil
}

// tracesInEnv reports whether the environment asks for traces.
func tracesInEnv() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// tracesURL returns the URL for traces. An endpoint without a path gets the usual path.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("--otlp-endpoint %q: want a URL, such as http://localhost:4318", endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// tracesPath is the path for traces in OTLP over HTTP.
const tracesPath = "/v1/traces"
