// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// write makes the object what it should be, unless somebody has changed it since it was read. Afterwards, o.was is what is stored, as far as
// that is known.
func (r *Registrar) write(ctx context.Context, o *object) error {
	client := r.client.Resource(o.gvr)
	var stored *unstructured.Unstructured
	var err error
	switch {
	case o.now == nil && !o.exists():
		return nil
	case o.now == nil:
		if err = r.remove(ctx, o); err == nil {
			o.was.SetResourceVersion("")
		}
		return err
	case o.exists() && equal(o.was, o.now):
		return nil
	case !o.exists() && len(r.cfg.clients(o.now)) == 0:
		return nil // there is nothing to create yet
	case o.exists():
		stored, err = client.Update(ctx, o.now, metav1.UpdateOptions{FieldManager: fieldManager})
	default:
		stored, err = client.Create(ctx, o.now, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		r.learn(o.now, err)
		return err
	}
	o.was = stored
	return nil
}

// remove deletes an object as it was read.
func (r *Registrar) remove(ctx context.Context, o *object) error {
	uid, version := o.was.GetUID(), o.was.GetResourceVersion()
	err := r.client.Resource(o.gvr).Delete(ctx, o.was.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// learn remembers the webhooks that the API server refuses, because one of them must not prevent the registration of the others.
func (r *Registrar) learn(object *unstructured.Unstructured, err error) {
	var status apierrors.APIStatus
	hooks, _ := object.Object["webhooks"].([]any)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return
	}
	if len(r.refused) > maxRefused {
		clear(r.refused)
	}
	for _, cause := range status.Status().Details.Causes {
		var i int
		if _, scanned := fmt.Sscanf(cause.Field, "webhooks[%d]", &i); scanned != nil || i < 0 || i >= len(hooks) {
			continue
		}
		if hook, ok := hooks[i].(map[string]any); ok {
			r.refused[key(hook)] = fmt.Errorf("the API server refuses it: %s: %s", cause.Field, cause.Message)
		}
	}
}

// open checks whether the API server can call this group: only then webhooks are registered. One success is enough, because the server runs
// until the configurations were removed.
func (r *Registrar) open(ctx context.Context, bundle []byte) error {
	if !r.opened.IsZero() || r.cfg.BundlesOnly || !r.serves() {
		return nil
	}
	address, host := r.cfg.endpoint()
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if bundle != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(bundle)
	} else { // others write the caBundle, so which authority is right is not known here
		config.InsecureSkipVerify = true //nolint:gosec // the name is verified
		config.VerifyConnection = func(s tls.ConnectionState) error { return s.PeerCertificates[0].VerifyHostname(host) }
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: requestTimeout}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("webhooks are registered when their server answers at %s: %w", address, err)
	}
	r.opened = time.Now()
	r.cfg.Logger.Info("registering webhooks", "configuration", r.cfg.Name, "server", address)
	return conn.Close()
}

// serves reports whether there is a certificate to serve.
func (r *Registrar) serves() bool { return r.cfg.Authority == nil || r.cfg.Authority.Ready() == nil }

// endpoint returns the address at which the API server calls the group, and the host in its certificate.
func (o *Options) endpoint() (address, host string) {
	if o.Service.Name != "" {
		host = o.Service.Name + "." + o.Service.Namespace + ".svc"
		return net.JoinHostPort(host, strconv.Itoa(int(o.Service.Port))), host
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return o.URL, ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port), u.Hostname()
}

// end removes the entry of this replica and, if no other replica runs, the configurations.
func (r *Registrar) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	err := r.record.remove(ctx, r.cfg.Replica)
	for try := 0; err == nil && try < maxAttempts; try++ {
		if err = r.close(ctx); !apierrors.IsConflict(err) {
			break
		}
		err = nil
	}
	if err != nil {
		return fmt.Errorf("webhooks remain registered: %w", err)
	}
	return nil
}

// close removes the configurations and releases the CRDs, unless another replica runs.
func (r *Registrar) close(ctx context.Context) error {
	objects, err := r.read(ctx, nil, time.Now())
	if err != nil {
		return err
	}
	members, err := r.record.read(ctx)
	if err != nil || others(members, r.cfg.Replica, time.Now()) {
		return err
	}
	for _, o := range objects {
		switch {
		case !o.exists() || r.cfg.BundlesOnly:
			continue
		case o.gvr == crds:
			r.cfg.Logger.Warn("no replica converts the objects of a CRD any more", "crd", o.was.GetName())
			o.release()
		default:
			r.cfg.Logger.Info("webhooks are no longer registered", "configuration", o.String())
			o.empty(&r.cfg.Options)
		}
		if err := r.write(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", o, err)
		}
	}
	return r.record.end(ctx)
}
