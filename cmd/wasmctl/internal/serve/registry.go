// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/load"
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
	ring, err := s.keyring(ctx, o, user)
	if err != nil {
		return nil, notFetched("PullSecret", err, false)
	}
	options := s.cfg.Registry()
	if m.RegistryCA != nil {
		pem, err := s.keyOf(ctx, o, user, *m.RegistryCA)
		if err == nil {
			options.Roots, err = oci.AddRoots(options.Roots, []byte(pem))
		}
		if err != nil {
			return nil, notFetched("RegistryCA", fmt.Errorf("spec.module.registryCA: %w", err), false)
		}
	}
	options.Credentials = func(_ context.Context, host, repository string) ([]oci.Credential, error) {
		return ring.For(host, repository), nil
	}
	if err := require(&options, m.Verify); err != nil {
		return nil, &problem{condition: v1alpha1.ModuleVerified, reason: "InvalidSpec", message: err.Error(), stalled: true}
	}
	options.PolicyID = policyID(options.PolicyID, user, m.PullSecrets)
	a, err := oci.New(options).Pull(ctx, ref)
	if err != nil {
		return nil, pullProblem(err)
	}
	insecure := ""
	if slices.Contains(options.Insecure, ref.Host) {
		insecure = ref.Host
	}
	at := a.Ref
	at.Tag, at.Range = "", ""
	return &fetched{
		wasm: unique.Make(string(a.Wasm)), digest: load.DigestOf(a.Wasm), image: at.String(), version: cmp.Or(a.Ref.Tag, humanize.Digest(a.Digest)),
		insecure: insecure, verified: m.Verify != nil, proof: a.Proof,
	}, nil
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

// policyID identifies who may use a cached module: a service account with these secrets and keys.
func policyID(keys, user string, secrets []v1alpha1.LocalRef) string {
	parts := []string{keys, user}
	for _, s := range secrets {
		parts = append(parts, s.Name)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

func pullProblem(err error) error {
	switch {
	case errors.Is(err, signature.ErrUnsigned):
		return &problem{condition: v1alpha1.ModuleVerified, reason: "SignatureRefused", message: err.Error(), stalled: true}
	case errors.Is(err, oci.ErrUnreachable):
		return notFetched("RegistryUnavailable", err, false)
	case errors.Is(err, oci.ErrUnauthorized):
		return notFetched("Unauthorized", err, false)
	case errors.Is(err, oci.ErrNotFound): // it may be pushed later
		return notFetched("NotFound", err, false)
	case errors.Is(err, oci.ErrRefused), failure.Of(err) == failure.Usage:
		return notFetched("ImageRefused", err, true)
	}
	return notFetched("ImagePullFailed", err, false)
}
