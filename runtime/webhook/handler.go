// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Timeouts of requests that do not name theirs, and the longest one that the API server has.
const (
	admissionTimeout  = 10 * time.Second
	conversionTimeout = 30 * time.Second
	maxTimeout        = 30 * time.Second
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // the recorder of a test has none
	to := s.find(r.URL.Path)
	if len(to) == 0 {
		s.fail(w, r, refuse(http.StatusNotFound, "no module serves the webhook %s", text.Shorten(r.URL.Path, 300)))
		return
	}
	done := s.cfg.Metrics.begin(to[0].share, r.URL.Path, s.paths)
	code := http.StatusInternalServerError
	defer func() { done(code) }()
	memory := &lease{accounts: to[0].accounts} // also if another of the backends converts, which only the body shows
	defer memory.release()
	var body [][]byte
	if err := s.guard(func() (err error) {
		body, err = s.answer(r, to, memory)
		return err
	}); err != nil {
		code = s.fail(w, r, err)
		return
	}
	code = http.StatusOK
	w.Header().Set("Content-Type", "application/json")
	for _, part := range body {
		_, _ = w.Write(part) // the client is gone if this fails
	}
}

// guard calls do. A panic is an error.
func (s *Server) guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Logger.Error("BUG: a webhook panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.cfg.Metrics.panics.Inc()
			err = refuse(http.StatusInternalServerError, "BUG: the host panicked: %v", p)
		}
	}()
	return do()
}

// answer returns the body of the answer, in parts.
func (s *Server) answer(r *http.Request, to []target, memory *lease) ([][]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		return nil, refuse(http.StatusMethodNotAllowed, "the method is %s, want POST", text.Shorten(r.Method, 20))
	case err != nil || media != "application/json":
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type is not application/json")
	}
	if !to[0].conversion && !s.trusts(r.TLS) {
		return nil, refuse(http.StatusUnauthorized, "the client has no certificate that --webhook-client-ca and --webhook-client-name accept: "+
			"the API server has one if its --admission-control-config-file names a kubeconfig for webhooks")
	}
	limit, timeout := s.cfg.Limits.Admission, admissionTimeout
	if to[0].conversion {
		limit, timeout = s.cfg.Limits.Conversion, conversionTimeout
	}
	ctx, cancel := withDeadline(r, timeout)
	defer cancel()
	packed, err := readBody(r, limit, memory)
	if err != nil {
		return nil, err
	}
	if to[0].conversion {
		return s.convert(ctx, to, packed, memory)
	}
	body, err := s.admit(ctx, to[0], packed, memory)
	return [][]byte{body}, err
}

// trusts reports whether the client of a connection may request admissions.
func (s *Server) trusts(conn *tls.ConnectionState) bool {
	if s.cfg.Clients == nil {
		return true
	}
	if conn == nil || len(conn.VerifiedChains) == 0 {
		return false
	}
	return s.cfg.ClientName == "" || conn.PeerCertificates[0].Subject.CommonName == s.cfg.ClientName
}

// withDeadline returns the context of a request, which ends shortly before the API server gives up.
func withDeadline(r *http.Request, timeout time.Duration) (context.Context, context.CancelFunc) {
	if d, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && d > 0 {
		timeout = min(d, maxTimeout)
	}
	return context.WithTimeout(r.Context(), timeout-max(timeout/10, min(timeout/2, 200*time.Millisecond)))
}

// readBody returns the msgpack of a request's body, for which memory is charged at the end.
func readBody(r *http.Request, limit int64, memory *lease) ([]byte, error) {
	var body []byte
	for err := error(nil); !errors.Is(err, io.EOF); {
		if len(body) == cap(body) {
			size := max(2*cap(body), 16<<10) // nothing is reserved for a body that never arrives, whatever its announced length
			if r.ContentLength >= int64(len(body)) {
				size = int(min(int64(size), r.ContentLength+1))
			}
			if err := memory.take(int64(size - cap(body))); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		var n int
		if n, err = r.Body.Read(body[len(body):cap(body)]); err != nil && !errors.Is(err, io.EOF) {
			return nil, refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
		}
		if body = body[:len(body)+n]; int64(len(body)) > limit {
			return nil, refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", limit)
		}
	}
	if err := memory.take(int64(len(body))); err != nil {
		return nil, err
	}
	packed, err := pack(make([]byte, 0, len(body)), body, memory.take)
	if err != nil {
		return nil, err
	}
	return packed, memory.resize(int64(cap(packed)))
}

// fail answers with a Status, which the API server shows to the client. It returns its code.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) (code int) {
	code = http.StatusInternalServerError
	if own, ok := errors.AsType[*refusal](err); ok {
		code = own.code
	} else if errors.Is(err, context.DeadlineExceeded) {
		code = http.StatusGatewayTimeout
	}
	message := text.Truncate(text.Printable(strings.ToValidUTF8(err.Error(), "")), maxText)
	s.cfg.Logger.Warn("webhook failed", "path", text.Shorten(r.URL.Path, 300), "code", code, "error", message)
	body, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), //nolint:gosec // an HTTP status
		Reason: reasons[code], Message: message,
	})
	if err != nil {
		body = nil // a Status of texts always has JSON
	}
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client is gone if this fails
	return code
}
