package serve

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Registry fetches modules from registries.
type Registry interface {
	// Fetch resolves a reference once, and fetches what it names by digest. The error
	// matches ErrInvalid where another spec is needed, and ErrUnverified where no key
	// has signed the module.
	Fetch(ctx context.Context, image Image) (*Fetched, error)
}

// Errors of a Registry.
var (
	ErrInvalid    = errors.New("invalid reference")
	ErrUnverified = errors.New("not signed by a key that is accepted")
)

// Image is what a Registry is asked for.
type Image struct {
	Ref string
	// Keys are PEM. One of them must have signed the module, unless there are none.
	Keys []string
	// Secrets are pull secrets: credentials beside the process's own.
	Secrets []Secret
}

// Secret is a pull secret.
type Secret struct {
	Name, Type string
	Data       map[string][]byte
}

// Fetched is a module of a registry.
type Fetched struct {
	Wasm []byte
	// Image is the reference by digest, Version the tag or the short digest.
	Image, Version string
	Verified       bool
}

// source is what a module was fetched for: another one is fetched again.
type source struct {
	module    v1alpha1.Module
	requested string
	user      string
}

// fetched is a module that is ready to run. It implements wasmctl.Module.
type fetched struct {
	wasm                   []byte
	digest, image, version string
	verified               bool
}

// Read implements wasmctl.Module.
func (f *fetched) Read() ([]byte, error) { return f.wasm, nil }

// String implements wasmctl.Module.
func (f *fetched) String() string { return f.image }

// fetch fetches the module of a spec, unless it is there: once for each spec, and
// again where a tag is followed or somebody asks for it.
func (u *unit) fetch(ctx context.Context, o *reconciler, user string) error {
	want, now := source{o.spec.Module, o.requested(), user}, time.Now()
	follow := time.Duration(0)
	if d := o.spec.Module.Follow; d != nil {
		follow, _ = time.ParseDuration(string(*d)) // the CRD has checked it
	}
	if o.spec.Module.ConfigMapKeyRef != nil {
		follow = quiet
	}
	if u.module != nil && reflect.DeepEqual(want, u.source) && (follow == 0 || now.Sub(u.followed) < follow) {
		return nil
	}
	m, err := u.server.fetch(ctx, o, user)
	if err != nil {
		return err
	}
	u.module, u.source, u.followed = m, want, now
	return nil
}

// fetch fetches the module of a spec.
func (s *Server) fetch(ctx context.Context, o *reconciler, user string) (*fetched, error) {
	m := &o.spec.Module
	if ref := m.ConfigMapKeyRef; ref != nil {
		return s.fromConfigMap(ctx, o, user, ref)
	}
	image := Image{Ref: m.Image}
	if m.Verify != nil {
		image.Keys = m.Verify.Keys
	}
	for _, ref := range m.PullSecrets {
		secret, err := s.get(ctx, user, "secrets", o.home(), ref.Name)
		if err != nil {
			return nil, notFetched("PullSecret", err, false)
		}
		kind, _, _ := unstructured.NestedString(secret, "type")
		image.Secrets = append(image.Secrets, Secret{ref.Name, kind, binary(secret, "data")})
	}
	got, err := s.cfg.Registry.Fetch(ctx, image)
	switch {
	case errors.Is(err, ErrUnverified):
		return nil, &problem{condition: v1alpha1.ModuleVerified, reason: "SignatureRefused", message: err.Error(), stalled: true}
	case errors.Is(err, ErrInvalid):
		return nil, notFetched("ImageRefused", err, true)
	case err != nil:
		return nil, notFetched("ImagePullFailed", err, false)
	}
	return &fetched{got.Wasm, host.DigestOf(got.Wasm), got.Image, got.Version, got.Verified}, nil
}

func notFetched(reason string, err error, stalled bool) error {
	return &problem{condition: v1alpha1.ModuleFetched, reason: reason, message: err.Error(), stalled: stalled}
}

// fromConfigMap reads a module from a ConfigMap, as the service account may.
func (s *Server) fromConfigMap(ctx context.Context, o *reconciler, user string, ref *v1alpha1.KeyRef) (*fetched, error) {
	object, err := s.get(ctx, user, "configmaps", o.home(), ref.Name)
	if err != nil {
		return nil, notFetched("ConfigMapFailed", err, false)
	}
	content, ok := binary(object, "binaryData")[ref.Key]
	if !ok {
		return nil, notFetched("ConfigMapFailed", fmt.Errorf("configmap[%s/%s]: there is no binaryData[%q]", o.home(), ref.Name, ref.Key), false)
	}
	wasm, err := host.Unpack(content)
	if err != nil {
		return nil, notFetched("ModuleRefused", fmt.Errorf("configmap[%s/%s]: %w", o.home(), ref.Name, err), true)
	}
	digest := host.DigestOf(wasm)
	return &fetched{wasm, digest, "configmap " + o.home() + "/" + ref.Name, humanize.Digest(digest), false}, nil
}

// settings are those of the spec.
func (s *Server) settings(ctx context.Context, o *reconciler, user string) (map[string]string, error) {
	out := map[string]string{}
	for i := range o.spec.ConfigFrom {
		from := &o.spec.ConfigFrom[i]
		value, ok, err := s.setting(ctx, o, user, from)
		if err != nil {
			return nil, &problem{reason: "ConfigMissing", message: fmt.Sprintf("spec.configFrom[%d]: %v", i, err)}
		}
		if ok {
			ref := from.ConfigMapKeyRef
			if ref == nil {
				ref = from.SecretKeyRef
			}
			name := from.Setting
			if name == "" {
				name = ref.Key
			}
			out[name] = value
		}
	}
	if o.spec.Config == nil {
		return out, nil
	}
	own, err := flags.ParseSettings(o.spec.Config.Raw)
	if err != nil {
		return nil, &problem{reason: "InvalidSpec", message: "spec.config: " + err.Error(), stalled: true}
	}
	maps.Copy(out, own)
	return out, nil
}

// setting reads one setting, as the service account may.
func (s *Server) setting(ctx context.Context, o *reconciler, user string, from *v1alpha1.ConfigSource) (value string, ok bool, err error) {
	ref, resource := from.ConfigMapKeyRef, "configmaps"
	if ref == nil {
		ref, resource = from.SecretKeyRef, "secrets"
	}
	object, err := s.get(ctx, user, resource, o.home(), ref.Name)
	if apierrors.IsNotFound(err) && from.Optional {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if resource == "secrets" {
		b, ok := binary(object, "data")[ref.Key]
		value = string(b)
		return value, ok, absent(ok || from.Optional, resource, ref)
	}
	value, ok, _ = unstructured.NestedString(object, "data", ref.Key)
	return value, ok, absent(ok || from.Optional, resource, ref)
}

func absent(ok bool, resource string, ref *v1alpha1.KeyRef) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s[%s] has no key %q", resource, ref.Name, ref.Key)
}

// get reads an object of the core group as a user: a Reconciler gets nothing that
// its service account cannot read.
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

// binary is a map with values in base64.
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
