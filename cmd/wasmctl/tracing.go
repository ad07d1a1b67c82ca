package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracesPath is where an OTLP receiver takes traces over HTTP, as the protocol
// says.
const tracesPath = "/v1/traces"

// flushLimit bounds how long the end of the process waits for its last traces to
// be sent.
const flushLimit = 5 * time.Second

// tracing writes one trace for each run, once that is over: nothing of it is on
// the way of a run. The id of a trace follows from the reconcile id, so that logs
// have it while the run goes on.
type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	secret   [16]byte // makes ids of traces that no other process has
}

// newTracing returns what writes traces to the OTLP endpoint of the flag or of
// the environment, as OpenTelemetry names its variables; nil where there is none.
func newTracing(ctx context.Context, endpoint string, log *slog.Logger) (*tracing, error) {
	if endpoint == "" && !tracesInEnv() {
		return nil, nil //nolint:nilnil // none is wanted
	}
	if p := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		log.Warn("traces are sent as http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL is not followed", "protocol", p)
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
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "wasmctl"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "error", err.Error()) }))
	t := &tracing{}
	if _, err := rand.Read(t.secret[:]); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{}))
	t.tracer = t.provider.Tracer("github.com/wasmctl/wasmctl", trace.WithInstrumentationVersion(version))
	return t, nil
}

// tracesInEnv reports whether the environment asks for traces.
func tracesInEnv() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// tracesURL is where traces are sent to: an endpoint without a path has them at
// the usual one.
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

// close sends what is left.
func (t *tracing) close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("traces: the last ones are lost: %w", err)
	}
	return nil
}

// traceID is that of the trace of a run, in hex.
func (t *tracing) traceID(reconcileID string) string { return t.idOf(reconcileID).String() }

func (t *tracing) idOf(reconcileID string) trace.TraceID {
	sum := sha256.Sum256(append(t.secret[:], reconcileID...))
	return trace.TraceID(sum[:16])
}

// ids gives a trace the id that its context carries. It implements
// sdktrace.IDGenerator.
type ids struct{}

type traceIDKey struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(traceIDKey{}).(trace.TraceID)
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.LittleEndian.PutUint64(id[:], mathrand.Uint64())
	}
	return id
}
