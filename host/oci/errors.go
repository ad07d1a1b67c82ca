// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/text"
)

// Errors of this package, for errors.Is.
var (
	// ErrUnreachable means that the registry does not answer, possibly only for now.
	ErrUnreachable = errors.New("registry unreachable")
	// ErrNotFound means that the registry does not have the requested content.
	ErrNotFound = errors.New("not in the registry")
	// ErrUnauthorized means that credentials are missing, refused or unreadable.
	ErrUnauthorized = errors.New("registry denies access")
	// ErrRefused means that the registry's content is not a module, or not the requested one, or
	// that the registry refused a push.
	ErrRefused = errors.New("refused")
)

// errElsewhere means that the last request before an error went to another host than the registry.
var errElsewhere = errors.New("not the registry itself")

// maxText is the maximum length of the text of an error, which registries may have written.
const maxText = 2 << 10

// classes maps errors to classes of exit codes.
var classes = map[error]failure.Class{
	ErrUnreachable: failure.Registry, ErrNotFound: failure.Module, ErrUnauthorized: failure.Denied, ErrRefused: failure.Module,
}

// as returns an error with a kind and its class.
func as(kind, err error) error { return failure.As(classes[kind].Wrap(err), kind) }

// BusyError is the error of a registry that refuses requests until a certain time. It matches
// ErrUnreachable.
type BusyError struct {
	Host  string
	Until time.Time
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("registry[%s]: too many requests: it wants no other before %s", e.Host, e.Until.UTC().Format(time.RFC3339))
}

// explain adds the subject of an error, and the remedy, unless they are there. Its text is one line, because registries
// write parts of it.
func explain(r Ref, err error) error {
	if line := text.Ends(text.Line(err.Error()), maxText); line != err.Error() {
		err = text.Replace(err, line)
	}
	for kind := range classes {
		if errors.Is(err, kind) {
			return err
		}
	}
	next, kind := kindOf(err)
	err = fmt.Errorf("module[%s]: %w", r, err)
	if next != "" {
		err = fmt.Errorf("%w; %s", err, strings.ReplaceAll(next, "HOST", r.Host))
	}
	return as(kind, err)
}

// kindOf returns the kind of an error, and the remedy, in which HOST stands for the registry's
// host.
func kindOf(err error) (next string, kind error) {
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return kindOfStatus(answer)
	}
	if busy, ok := errors.AsType[*BusyError](err); ok {
		return fmt.Sprintf("wait for %v", time.Until(busy.Until).Round(time.Second)), ErrUnreachable
	}
	if errors.Is(err, errPlain) || errors.Is(err, errRedirect) || errors.Is(err, ErrBarred) {
		return "", ErrRefused
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "HOST speaks plain HTTP: if it may, use --insecure-registry HOST", ErrUnreachable
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return "no credentials for HOST were found: use docker login HOST, or a pull secret", ErrUnauthorized
	}
	if errors.Is(err, errdef.ErrNotFound) {
		return "check repository, tag and digest", ErrNotFound
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "trust the authority that signed the certificate of HOST: --registry-ca FILE, or SSL_CERT_FILE in the environment; a Reconciler can name it in spec.module.registryCA", ErrUnreachable
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "correct the certificate of HOST", ErrUnreachable
	}
	if wrong(err) {
		return "check the name of the registry, and the network", ErrUnreachable
	}
	return "", ErrRefused
}

// wrong reports whether an error is one of the network.
func wrong(err error) bool {
	_, ofURL := errors.AsType[*url.Error](err)
	_, ofNet := errors.AsType[net.Error](err)
	return ofURL || ofNet || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// kindOfStatus is kindOf for an answer.
func kindOfStatus(answer *errcode.ErrorResponse) (next string, kind error) {
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "check the credentials for HOST, and that they may use this repository", ErrUnauthorized
	case status == http.StatusNotFound:
		return "check repository, tag and digest; some registries answer this if credentials for HOST are missing", ErrNotFound
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError:
		return "try again later", ErrUnreachable
	}
	return "", ErrRefused
}

// Public returns an error of Pull for a user who has chosen the registry, but must not explore the network of the
// process: it has one of few kinds. Only a registry, which the user can reach, makes a difference. All other hosts are
// unreachable, whatever they answer, and so is a registry that sends the client to another host.
func (c *Client) Public(ctx context.Context, r Ref, err error) error {
	elsewhere := errors.Is(err, errElsewhere)
	host := registry.Reference{Registry: r.Host}.Host()
	switch until := c.http.lane.busyUntil(host); {
	case time.Until(until) > 0 && !elsewhere:
		return as(ErrUnreachable, &BusyError{host, until})
	case errors.Is(err, ErrBarred) && !elsewhere:
		return as(ErrRefused, fmt.Errorf("registry[%s]: %w", r.Host, ErrBarred))
	case elsewhere, errors.Is(err, ErrUnreachable), !c.isRegistry(ctx, r):
		return as(ErrUnreachable, fmt.Errorf("registry[%s]: it cannot be reached, or does not answer as a registry: check its name, port and certificate "+
			"(spec.module.registryCA for a private authority), and the credentials; the log of wasmctl has the details", r.Host))
	case errors.Is(err, ErrUnauthorized):
		return as(ErrUnauthorized, fmt.Errorf("module[%s]: the registry denies access: check the credentials in spec.module.pullSecrets, and that they may use this repository", r))
	case errors.Is(err, ErrNotFound):
		return as(ErrNotFound, fmt.Errorf("module[%s]: the registry does not have it: check repository, tag and digest; some registries answer this if credentials are missing", r))
	}
	return err
}

// isRegistry reports whether a host implements the base of the registry's API. Other servers may answer 404, too.
func (c *Client) isRegistry(ctx context.Context, r Ref) bool {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	repo, v := c.remote(r, Credential{}, c.http.isPlain(ctx, r.Host))
	scheme := "https"
	if repo.PlainHTTP {
		scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+v.home+"/v2/", nil)
	if err != nil {
		return false
	}
	resp, err := v.client().Do(req)
	if err != nil || v.away {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.Header.Get("Docker-Distribution-Api-Version") != "" || strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	case http.StatusUnauthorized:
		return resp.Header.Get("WWW-Authenticate") != ""
	}
	return false
}

// refusesType reports whether a registry refuses unknown media types.
func refusesType(err error) bool {
	answer, ok := errors.AsType[*errcode.ErrorResponse](err)
	if !ok {
		return false
	}
	for _, e := range answer.Errors {
		if e.Code == errcode.ErrorCodeManifestInvalid {
			return true
		}
	}
	return answer.StatusCode == http.StatusUnsupportedMediaType
}
