// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/oci"
)

// Formats of sign.
const (
	formatBundle = "bundle"
	formatLegacy = "legacy"
)

// signOptions are the flags of sign.
type signOptions struct {
	ref      oci.Ref
	key      string
	generate string
	format   string
	registry flags.Registry
	streams  streams
}

func newCmdSign(s streams) *cobra.Command {
	o := &signOptions{streams: s, registry: flags.Registry{Progress: s.progress}}
	cmd := &cobra.Command{
		Use:   "sign REF",
		Short: "Sign a module in an OCI registry",
		Long: `Signs the manifest that REF names now, and prints the reference with its digest and the fingerprint of the key. REF is
oci://HOST/REPOSITORY[:TAG][@sha256:HEX]. The signature is stored in the same repository. cosign verifies it, and wasmctl verifies
signatures that cosign made with a key.

The key is ECDSA on P-256, Ed25519 or RSA, in PEM. COSIGN_PASSWORD has the password of a key that cosign encrypted.
--generate-key makes such a key, and needs no REF.`,
		Example: `  COSIGN_PASSWORD=... wasmctl sign --generate-key release        # writes release.key and release.pub
  COSIGN_PASSWORD=... wasmctl sign oci://ghcr.io/acme/greeter:1.2.0 --key release.key`,
		Args: maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return usageError(cmd, err)
			}
			return runSign(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "", "Sign with the private key in this PEM `file`")
	f.StringVar(&o.format, "format", formatBundle, "Sign in this `format`: bundle (cosign 3), or legacy (a tag that ends in .sig, for older tools)")
	f.StringVar(&o.generate, "generate-key", "", "Write a new key to `prefix`.key and prefix.pub, and sign nothing")
	o.registry.Bind(f)
	_ = cmd.MarkFlagFilename("key", "key", "pem")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{formatBundle, formatLegacy}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// complete checks flags and arguments.
func (o *signOptions) complete(args []string) (err error) {
	switch {
	case o.generate != "" && (len(args) > 0 || o.key != ""):
		return errors.New("--generate-key signs nothing: sign with the new key afterwards")
	case o.generate != "":
		return nil
	case len(args) == 0:
		return errors.New("REF is missing")
	case o.key == "":
		return errors.New("--key is missing; --generate-key makes one")
	case o.format != formatBundle && o.format != formatLegacy:
		return fmt.Errorf("--format %q: want %s or %s", o.format, formatBundle, formatLegacy)
	}
	o.ref, err = oci.Parse(args[0])
	return err
}

func runSign(ctx context.Context, o *signOptions) error {
	if o.generate != "" {
		key, err := flags.GenerateKey(o.generate)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.streams.out, "%s.key\n%[1]s.pub: %s\n", o.generate, key.Fingerprint())
		return err
	}
	key, err := flags.ReadKey(o.key)
	if err != nil {
		return err
	}
	defer o.streams.progress.Start("signing " + o.ref.String()).End()
	ref, err := o.registry.Client().Sign(ctx, o.ref, key, o.format == formatLegacy)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.out, "%s\nsigned by %s\n", ref, key.Fingerprint())
	return err
}
