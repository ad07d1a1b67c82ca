// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
)

// absenceTimeout limits an attempt to reach the converter of another group.
const absenceTimeout = 2 * time.Second

// free returns an error if another group converts the objects of a CRD. A group that is gone does not count: all of its certificates have
// expired, or its server has been absent for as long as a replica may be silent.
func (r *Registrar) free(ctx context.Context, crd *unstructured.Unstructured, now time.Time) error {
	name, other := crd.GetName(), crd.GetLabels()[label]
	if other == "" {
		return nil
	}
	client, _, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig")
	expired := certs.AllExpired(now, bundleOf(client))
	switch since, known := r.absent[name]; {
	case !expired && !r.cfg.absent(ctx, client):
		delete(r.absent, name)
	case expired || known && now.Sub(since) >= silence:
		r.cfg.Logger.Warn("taking over the conversion of a CRD: its converter is gone", "crd", name, "converter", other)
		return nil
	case !known:
		r.absent[name] = now
	}
	return fmt.Errorf("%s converts its objects; they are converted here once its server has been absent for %s, or its label %s is removed", other, silence, label)
}

// absent reports whether a server certainly does not serve: no address is known, its Service does not exist, or it refuses connections. A
// timeout proves nothing. A process outside of the cluster cannot know about a Service.
func (o *Options) absent(ctx context.Context, client map[string]any) bool {
	var of Options
	of.URL, _, _ = unstructured.NestedString(client, "url")
	of.Service.Namespace, _, _ = unstructured.NestedString(client, "service", "namespace")
	of.Service.Name, _, _ = unstructured.NestedString(client, "service", "name")
	port, _, _ := unstructured.NestedInt64(client, "service", "port")
	of.Service.Port = int32(cmp.Or(port, 443)) //nolint:gosec // a port
	switch {
	case of.URL == "" && of.Service.Name == "":
		return true
	case of.Service.Name != "" && o.Service.Name == "":
		return false
	}
	address, _ := of.endpoint()
	conn, err := (&net.Dialer{Timeout: absenceTimeout}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close() // it is answered
		return false
	}
	unknown, ok := errors.AsType[*net.DNSError](err)
	return ok && unknown.IsNotFound || errors.Is(err, syscall.ECONNREFUSED)
}

// release gives up the CRD, so that another group may convert its objects. The conversion remains, because objects may be stored in any
// version.
func (o *object) release() {
	labels := o.now.GetLabels()
	delete(labels, label)
	o.now.SetLabels(labels)
}
