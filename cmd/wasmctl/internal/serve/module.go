// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/spill"
)

// source is the origin of a fetched module. If it changes, the module is fetched again.
type source struct {
	module    v1alpha1.Module
	requested string
	user      string
	follow    time.Duration // the interval of further fetches; 0 is never
}

// fetched is a module that is ready to run. It implements wasmctl.Module.
type fetched struct {
	wasm                   *spill.Bytes // once for all Reconcilers
	digest, image, version string
	tagged                 string // the image with its tag; empty if it has none
	verified               bool
	proof                  []byte // of the signers
	insecure               string // the registry, if the module came without verified TLS
	object                 string // the state of the ConfigMap that the module came from: see stateOf
}

// Read implements wasmctl.Module.
func (f *fetched) Read(context.Context) ([]byte, error) { return f.wasm.Get() }

// Spilled returns the bytes outside of memory. The Runtime reads them while it loads the module,
// and charges the tenant.
func (f *fetched) Spilled() *spill.Bytes { return f.wasm }

// Digest returns the digest of the module.
func (f *fetched) Digest() string { return f.digest }

// Proof implements wasmctl.Signed.
func (f *fetched) Proof() []byte { return f.proof }

// String implements wasmctl.Module.
func (f *fetched) String() string { return cmp.Or(f.tagged, f.image) }

// fetch fetches the module of a spec, unless it was already fetched. It fetches again after a change of
// the source, at the interval of a followed tag, and on request.
func (u *unit) fetch(ctx context.Context, o *reconciler, user string) error {
	want, now := source{module: o.spec.Module, requested: o.requested(), user: user}, time.Now()
	if want.follow = o.spec.Module.Follow.Or(0); want.follow > 0 {
		want.follow = max(want.follow, u.server.cfg.MinFollow)
	}
	if o.spec.Module.ConfigMapKeyRef != nil {
		want.follow = quiet
	}
	if u.module != nil && reflect.DeepEqual(want, u.source) {
		if want.follow == 0 || now.Sub(u.followed) < want.follow {
			return nil
		}
		if u.server.unchanged(ctx, o, user, u.module) {
			u.followed = now
			return nil
		}
	}
	m, err := u.server.fetch(ctx, o, user)
	if err != nil {
		return err
	}
	u.module, u.source, u.followed = m, want, now
	return nil
}

// configMapImage begins the image of a module in a ConfigMap: its name and key follow.
const configMapImage = "configmap "

// fetch fetches the module of a spec, in a turn of its tenant. If a problem conceals its cause, fetch takes the same time
// for each cause, the rest of it without a turn.
func (s *Server) fetch(ctx context.Context, o *reconciler, user string) (m *fetched, err error) {
	tenant := o.tenant()
	if err := s.turns.Take(ctx, tenant); err != nil {
		return nil, err
	}
	startedAt := time.Now()
	defer func() {
		s.turns.End(tenant, 1, time.Since(startedAt))
		if p, ok := errors.AsType[*problem](err); ok && p.conceals {
			wait(ctx, startedAt.Add(answerTime))
		}
	}()
	if ref := o.spec.Module.ConfigMapKeyRef; ref != nil {
		return s.fromConfigMap(ctx, o, user, ref)
	}
	return s.fromRegistry(ctx, o, user)
}

func notFetched(reason string, err error, stalled bool) *problem {
	return &problem{condition: v1alpha1.ModuleFetched, reason: reason, message: err.Error(), stalled: stalled, denied: apierrors.IsForbidden(err)}
}

// fromConfigMap reads a module from a ConfigMap with the rights of the service account.
func (s *Server) fromConfigMap(ctx context.Context, o *reconciler, user string, ref *v1alpha1.KeyRef) (*fetched, error) {
	object, err := s.get(ctx, user, "configmaps", o.home(), ref.Name)
	if err != nil {
		return nil, notFetched("ConfigMapFailed", err, false)
	}
	content, ok := binary(object, "binaryData")[ref.Key]
	if !ok {
		return nil, notFetched("ConfigMapFailed", fmt.Errorf("configmap[%s/%s]: there is no binaryData[%q]", o.home(), ref.Name, ref.Key), false)
	}
	wasm, digest, err := s.files.store(o.tenant(), func(w io.Writer) error { return load.UnpackTo(w, content) })
	if err != nil {
		full := errors.Is(err, share.ErrMemoryBudget)
		return nil, notFetched(map[bool]string{true: "TooManyModules", false: "ModuleRefused"}[full], fmt.Errorf("configmap[%s/%s]: %w", o.home(), ref.Name, err), !full)
	}
	return &fetched{
		wasm: wasm, digest: digest, image: configMapImage + ref.Name + "/" + ref.Key, version: humanize.Digest(digest),
		object: stateOf(&unstructured.Unstructured{Object: object}),
	}, nil
}

// stateOf identifies a state of an object.
func stateOf(o metav1.Object) string { return string(o.GetUID()) + " " + o.GetResourceVersion() }

// unchanged reports whether the ConfigMap of a module is as it was when the module was fetched. It asks for the metadata only: reading
// the module again takes a hundred times as long.
func (s *Server) unchanged(ctx context.Context, o *reconciler, user string, m *fetched) bool {
	ref := o.spec.Module.ConfigMapKeyRef
	if ref == nil {
		return false
	}
	as, err := s.as(user)
	if err != nil {
		return false
	}
	now, err := as.lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(o.home()).Get(ctx, ref.Name, metav1.GetOptions{})
	return err == nil && stateOf(now) == m.object // reading it reports an error
}

// settings returns the settings of the spec, which take precedence, and of ConfigMaps and Secrets. secrets are the values that come from
// Secrets.
func (s *Server) settings(ctx context.Context, o *reconciler, user string) (out v1alpha1.Config, secrets []string, err error) {
	out = v1alpha1.Config{}
	for i := range o.spec.ConfigFrom {
		from := &o.spec.ConfigFrom[i]
		value, err := s.keyOf(ctx, o, user, from.KeySource)
		switch {
		case from.Optional && (apierrors.IsNotFound(err) || errors.Is(err, errNoKey)):
		case err != nil:
			return nil, nil, &problem{reason: "ConfigMissing", message: fmt.Sprintf("spec.configFrom[%d]: %v", i, err), denied: apierrors.IsForbidden(err)}
		default:
			ref, _ := refOf(from.KeySource)
			out[cmp.Or(from.Setting, ref.Key)] = value
			if from.SecretKeyRef != nil {
				secrets = append(secrets, value)
			}
		}
	}
	maps.Copy(out, o.spec.Config)
	return out, secrets, nil
}

// errNoKey means that a ConfigMap or a Secret lacks a key.
var errNoKey = errors.New("has no key")

// keyOf reads a key of a ConfigMap or a Secret with the rights of the service account.
func (s *Server) keyOf(ctx context.Context, o *reconciler, user string, from v1alpha1.KeySource) (string, error) {
	ref, resource := refOf(from)
	object, err := s.get(ctx, user, resource, o.home(), ref.Name)
	if err != nil {
		return "", err
	}
	var ok bool
	var value string
	if resource == "secrets" {
		var b []byte
		b, ok = binary(object, "data")[ref.Key]
		value = string(b)
	} else {
		value, ok, _ = unstructured.NestedString(object, "data", ref.Key)
	}
	if !ok {
		return "", fmt.Errorf("%s[%s]: %w %q", resource, ref.Name, errNoKey, ref.Key)
	}
	return value, nil
}

// refOf returns the key that a source names, and its resource.
func refOf(from v1alpha1.KeySource) (ref *v1alpha1.KeyRef, resource string) {
	if from.ConfigMapKeyRef != nil {
		return from.ConfigMapKeyRef, "configmaps"
	}
	return from.SecretKeyRef, "secrets"
}

// get reads an object of the core group as this user, so that a Reconciler gets only objects that its
// service account can read.
func (s *Server) get(ctx context.Context, user, resource, namespace, name string) (map[string]any, error) {
	config := rest.CopyConfig(s.cfg.Cluster)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	o, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.Object, nil
}

// binary decodes a map of base64 values. It omits invalid ones.
func binary(object map[string]any, field string) map[string][]byte {
	out := map[string][]byte{}
	values, _, _ := unstructured.NestedStringMap(object, field)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if b, err := base64.StdEncoding.DecodeString(values[key]); err == nil {
			out[key] = b
		}
	}
	return out
}
