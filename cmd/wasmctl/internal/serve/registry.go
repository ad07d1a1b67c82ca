// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// fromRegistry fetches the module of an image. It uses only the credentials in the spec's pull secrets,
// none of the process, so that a tenant gets only modules that its service account can get. The cache
// separates tenants as well.
func (s *Server) fromRegistry(ctx context.Context, o *reconciler, user string) (*fetched, error) {
	m := &o.spec.Module
	ref, err := oci.Parse(m.Image)
	if err != nil {
		return nil, notFetched("InvalidSpec", fmt.Errorf("spec.module.image: %w", err), true)
	}
	if !s.cfg.Allow.Allows(ref) {
		return nil, notFetched("RegistryNotAllowed", fmt.Errorf("spec.module.image: this process may not use %s/%s; its operator can allow that: --registry-allow", ref.Host, ref.Repository), true)
	}
	options, err := s.registryOptions(ctx, o, user, ref)
	if err != nil {
		return nil, err
	}
	client := oci.New(options)
	a, err := client.Pull(ctx, ref)
	if err != nil {
		s.log(o).Warn("cannot pull a module", "reconciler", o.controller(), "error", err.Error()) // the tenant must not see the details
		p := pullProblem(client.Public(ctx, ref, err))
		p.conceals = p.conceals && !options.Guard.Named(ref.Host)
		return nil, p
	}
	wasm, digest, err := s.files.store(o.tenant(), func(w io.Writer) error {
		_, err := w.Write(a.Wasm)
		return err
	})
	if err != nil {
		return nil, notFetched("TooManyModules", err, false)
	}
	insecure := ""
	if slices.Contains(options.Insecure, ref.Host) {
		insecure = ref.Host
	}
	tagged, pinned := a.Ref, a.Ref
	tagged.Range, pinned.Range, pinned.Tag = "", "", ""
	return &fetched{
		wasm: wasm, digest: digest, image: pinned.String(), tagged: tagged.String(), version: cmp.Or(a.Ref.Tag, humanize.Digest(a.Digest)),
		insecure: insecure, verified: m.Verify != nil, proof: a.Proof,
	}, nil
}

// registryOptions returns the options for the registry of a spec.
func (s *Server) registryOptions(ctx context.Context, o *reconciler, user string, ref oci.Ref) (oci.Options, error) {
	m, options := &o.spec.Module, s.cfg.Registry()
	ring, err := s.keyring(ctx, o, user)
	if err != nil {
		return options, notFetched("PullSecret", err, false)
	}
	if m.RegistryCA != nil {
		pem, err := s.keyOf(ctx, o, user, *m.RegistryCA)
		if err == nil {
			options.Roots, err = oci.AddRoots(options.Roots, []byte(pem))
		}
		if err != nil {
			return options, notFetched("RegistryCA", fmt.Errorf("spec.module.registryCA: %w", err), false)
		}
	}
	credentials := ring.For(ref.Host, ref.Repository)
	options.Credentials = func(context.Context, string, string) ([]oci.Credential, error) { return credentials, nil }
	if err := require(&options, m.Verify); err != nil {
		return options, &problem{condition: v1alpha1.ModuleVerified, reason: "InvalidSpec", message: err.Error(), stalled: true}
	}
	options.PolicyID = policyID(options.PolicyID, user, credentials)
	options.Logger = s.log(o)
	options.Lane = s.tenants.of(o.tenant(), time.Now()).lane
	options.Guard = &oci.Guard{
		Named: func(host string) bool { return slices.Contains(options.Insecure, host) || s.cfg.Allow.Names(host) },
		Bars:  s.barred,
	}
	return options, nil
}

// keyring returns the credentials in the pull secrets.
func (s *Server) keyring(ctx context.Context, o *reconciler, user string) (ring oci.Keyring, err error) {
	for _, ref := range o.spec.Module.PullSecrets {
		secret, err := s.get(ctx, user, "secrets", o.home(), ref.Name)
		if err != nil {
			return nil, err
		}
		kind, _, _ := unstructured.NestedString(secret, "type")
		keys, err := oci.PullSecret(ref.Name, kind, binary(secret, "data"))
		if err != nil {
			return nil, err
		}
		ring = append(ring, keys...)
	}
	return ring, nil
}

// require accepts only modules that the spec's signature policy accepts, in addition to the policy of
// the process.
func require(o *oci.Options, v *v1alpha1.Verify) error {
	policy, errs := v.Policy(field.NewPath("module", "verify"))
	if v == nil || len(errs) > 0 {
		return v1alpha1.Errors(errs, inSpec)
	}
	first, id := o.Verify, o.PolicyID
	o.Require(*policy)
	o.PolicyID += id
	if then := o.Verify; first != nil {
		o.Verify = func(ctx context.Context, s *oci.Subject) error {
			if err := first(ctx, s); err != nil {
				return err
			}
			return then(ctx, s)
		}
	}
	return nil
}

// policyID identifies who may use a cached module: a service account with these credentials and keys. The names of its
// secrets are not enough, because a namespace can be deleted, and created again for other users.
func policyID(keys, user string, credentials []oci.Credential) string {
	sum := sha256.New()
	add := func(part string) { _, _ = fmt.Fprintf(sum, "%d %s,", len(part), part) }
	add(keys)
	add(user)
	for _, c := range credentials {
		add(c.Username)
		add(c.Password)
		add(c.IdentityToken)
		add(c.RegistryToken)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func pullProblem(err error) *problem {
	switch _, busy := errors.AsType[*oci.BusyError](err); {
	case errors.Is(err, signature.ErrUnsigned):
		return &problem{condition: v1alpha1.ModuleVerified, reason: "SignatureRefused", message: err.Error(), stalled: true}
	case errors.Is(err, oci.ErrBarred):
		return notFetched("RegistryNotAllowed", fmt.Errorf("spec.module.image: %w (--registry-allow)", err), true)
	case errors.Is(err, oci.ErrUnreachable):
		p := notFetched("RegistryUnavailable", err, false)
		p.conceals = !busy
		return p
	case errors.Is(err, oci.ErrUnauthorized):
		return notFetched("Unauthorized", err, false)
	case errors.Is(err, oci.ErrNotFound): // it may be pushed later
		return notFetched("NotFound", err, false)
	case errors.Is(err, oci.ErrRefused), failure.Of(err) == failure.Usage:
		return notFetched("ImageRefused", err, true)
	}
	return notFetched("ImagePullFailed", err, false)
}
