package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/wasmctl/wasmctl/abi"
)

// maxAnswerJSON bounds the body of an answer as the API server writes it, in
// bytes. JSON is longer than the msgpack of the same value, seldom by more
// than a half; what a guest gets is bounded by abi.MaxBytes exactly.
const maxAnswerJSON = 2 * abi.MaxBytes

// errAnswerTooLarge says that an answer is longer than maxAnswerJSON.
var errAnswerTooLarge = fmt.Errorf("the API server's answer is longer than %d bytes", maxAnswerJSON)

// Client is a connection to one API server: plain requests in JSON, without a
// rate limit of its own (the API server's priority and fairness decides), with
// answers of bounded size, and without following redirects, which would let a
// proxied pod see our credentials. It is safe for concurrent use.
type Client struct {
	host      string
	config    *rest.Config
	transport http.RoundTripper // authenticates; answers are not bounded
	rest      *rest.RESTClient  // answers are bounded
}

// NewClient returns a client for the API server of a config, of which only the
// address, the credentials and the transport are read. It sends nothing yet.
func NewClient(config *rest.Config) (*Client, error) {
	c := dynamic.ConfigFor(config)
	c.AcceptContentTypes = "application/json"
	c.QPS, c.RateLimiter = -1, nil
	c.WarningHandler = rest.NoWarnings{}
	c.GroupVersion, c.APIPath = nil, "/"
	base, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("api server[%s]: %w", config.Host, err)
	}
	transport := base.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	bounded := &http.Client{Transport: boundAnswers(transport), Timeout: base.Timeout, CheckRedirect: refuseRedirect}
	r, err := rest.UnversionedRESTClientForConfigAndClient(c, bounded)
	if err != nil {
		return nil, fmt.Errorf("api server[%s]: %w", config.Host, err)
	}
	return &Client{host: config.Host, config: c, transport: transport, rest: r}, nil
}

func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if resp != nil && resp.Body != nil {
			resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxAnswerJSON}
		}
		return resp, err
	})
}

// boundedBody is a body that may have so many bytes and no more. One goroutine
// reads it.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader; it returns errAnswerTooLarge once too much came.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errAnswerTooLarge
	}
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, errAnswerTooLarge
	}
	return n, err
}

// quiet returns ctx with a logger that drops what client-go logs beside the
// error that it returns.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

// unavailable wraps an error of a request of our own (discovery, reviews) and
// makes it an ErrUnavailable where another try may help.
func (c *Client) unavailable(what string, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if code := status.Status().Code; code < 500 && code != http.StatusTooManyRequests {
			return fmt.Errorf("api server[%s]: %s: %w", c.host, what, err)
		}
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("api server[%s]: %s: %w: %w", c.host, what, ErrUnavailable, err)
}
