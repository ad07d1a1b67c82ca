// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// maxAnswerJSON is the maximum size of the body of an answer, in bytes. JSON is longer than the
// msgpack of the same value, rarely by more than a half. The answer to a guest is limited by
// exactly abi.MaxBytes.
const maxAnswerJSON = 2 * abi.MaxBytes

// discoveryTimeout limits one discovery.
const discoveryTimeout = 15 * time.Second

// errAnswerTooLarge is the error of an answer that is longer than maxAnswerJSON.
var errAnswerTooLarge = fmt.Errorf("the API server's answer is longer than %d bytes", maxAnswerJSON)

// Client is a connection to one API server. It sends plain requests in JSON, without a rate limit
// of its own (the API server's priority and fairness decides), limits the size of answers, and
// follows no redirects, which would reveal our credentials to a proxied pod. It is safe for
// concurrent use.
type Client struct {
	host      string
	config    *rest.Config
	transport http.RoundTripper // authenticates; does not limit answers
	rest      *rest.RESTClient  // limits answers
}

// NewClient returns a client for the API server of a config. It uses only the address, the
// credentials and the transport, and sends nothing.
func NewClient(config *rest.Config) (*Client, error) {
	c := dynamic.ConfigFor(config)
	c.AcceptContentTypes = jsonType
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // decodes errors, which may be protobuf
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

// Discover implements kinds.Source. It sends two requests if the API server has aggregated
// discovery (Kubernetes 1.27 and later).
func (c *Client) Discover(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	bounded, cancel := context.WithTimeout(quiet(ctx), discoveryTimeout)
	defer cancel()
	// Discovery takes no context, so the transport adds it to each request.
	h := &http.Client{CheckRedirect: refuseRedirect, Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return c.transport.RoundTrip(req.WithContext(bounded))
	})}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(rest.CopyConfig(c.config), h)
	if err != nil {
		return nil, nil, err
	}
	groups, lists, err := discovery.ServerGroupsAndResources(d)
	if _, partly := discovery.GroupDiscoveryFailedErrorGroups(err); err != nil && !partly {
		err = c.unavailable("discovery", err)
	}
	return groups, lists, err
}

// unavailable wraps an error of the host's own request (discovery, reviews). It is
// kinds.ErrUnavailable if a retry may help.
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
	return fmt.Errorf("api server[%s]: %s: %w: %w", c.host, what, kinds.ErrUnavailable, err)
}
