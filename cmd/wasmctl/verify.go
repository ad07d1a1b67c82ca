// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/signature"
)

// verified is the result of verify.
type verified struct {
	// Reference is the reference with its digest, or the file.
	Reference string `json:"reference"`
	// Digest is the digest of the signed manifest, and Module is that of the module.
	Digest string `json:"digest"`
	Module string `json:"module"`
	// Signers are the fingerprints of the keys.
	Signers      []string                `json:"signers"`
	Attestations []signature.Attestation `json:"attestations"`
}

func newCmdVerify(s streams) *cobra.Command {
	registry := flags.Registry{Progress: s.progress}
	var output string
	cmd := &cobra.Command{
		Use:   "verify MODULE",
		Short: "Verify the signatures of a module",
		Long: `Verifies that one of the keys has signed a module, as "wasmctl run" does with the same flags, and prints the digests, the signers,
and the attestations that one of the keys has signed, such as an SBOM. The exit code is 3 if no key has signed the module.

MODULE is oci://HOST/REPOSITORY[:TAG][@sha256:HEX], or a file of "wasmctl save". The registry is asked anew: the cache is not used.`,
		Example: `  wasmctl verify oci://ghcr.io/acme/greeter:1.2.0 --verify-key release.pub
  wasmctl verify greeter.oci.tar --verify-key release.pub -o json`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(registry.VerifyKeys) == 0 {
				return usageError(cmd, errors.New("--verify-key is missing"))
			}
			task := registry.Transfer("verifying "+args[0], 0)
			v, err := verify(cmd.Context(), &registry, args[0])
			task.End()
			if err != nil {
				return err
			}
			return printer.Output(s.out, output, v, v.text)
		},
	}
	outputFlag(cmd, &output, "text", "json", "yaml")
	registry.Bind(cmd.Flags())
	registry.BindVerify(cmd.Flags())
	return cmd
}

// verify pulls a module with the policy of the flags.
func verify(ctx context.Context, registry *flags.Registry, module string) (*verified, error) {
	policy, err := registry.VerifyKeys.Policy()
	if err != nil {
		return nil, err
	}
	v := &verified{Reference: module, Attestations: []signature.Attestation{}}
	o := registry.Options()
	o.CacheDir, o.Credentials = "", flags.Login().Credentials
	admit := o.Verify
	o.Verify = func(ctx context.Context, s *oci.Subject) error {
		if err := admit(ctx, s); err != nil {
			return err
		}
		list, err := s.Attestations(ctx, policy)
		v.Attestations = append(v.Attestations[:0], list...)
		return err
	}
	a, err := pullAny(ctx, oci.New(o), registry, module)
	if err != nil {
		return nil, err
	}
	if oci.IsRef(module) {
		v.Reference = a.Ref.String()
	}
	v.Digest, v.Module = a.Digest, a.Layer
	v.Signers, err = signersOf(a)
	return v, err
}

// pullAny pulls a module from a registry or from an archive.
func pullAny(ctx context.Context, c *oci.Client, registry *flags.Registry, module string) (*oci.Artifact, error) {
	switch {
	case oci.IsArchive(module):
		a, err := oci.OpenArchive(module)
		if err != nil {
			return nil, err
		}
		return c.PullArchive(ctx, a)
	case oci.IsRef(module):
		ref, err := oci.Parse(module)
		if err != nil {
			return nil, err
		}
		return c.Pull(ctx, ref)
	}
	_, err := registry.Open(module).Read(ctx) // a file has no signature
	return nil, err
}

// text returns the result for people.
func (v *verified) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nmanifest %s\nmodule %s\n", v.Reference, v.Digest, v.Module)
	for _, signer := range v.Signers {
		fmt.Fprintf(&b, "signed by %s\n", signer)
	}
	for _, a := range v.Attestations {
		fmt.Fprintf(&b, "attestation %s signed by %s\n", a.Type, a.Signer)
	}
	return b.Bytes()
}
