// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

func newCmdSave(s streams) *cobra.Command {
	registry := flags.Registry{Progress: s.progress}
	var output string
	cmd := &cobra.Command{
		Use:   "save REF",
		Short: "Save a module with its signatures from a registry to a file",
		Long: `Saves a module from an OCI registry to a file, with everything that is attached to it: signatures, attestations, SBOMs. The
digests stay the same, so that the signatures stay valid. The file is an OCI image layout in a tar file, which programs such as oras
and skopeo read, too. "wasmctl load" pushes it to another registry, and all commands that read a module take it as MODULE.

REF is oci://HOST/REPOSITORY[:TAG][@sha256:HEX]. TAG can be a range of versions, as for "wasmctl pull".`,
		Example: `  wasmctl save oci://ghcr.io/acme/greeter:1.2.0
  wasmctl save 'oci://ghcr.io/acme/greeter:^1.2' -o greeter.tar --verify-key release.pub`,
		Args: exactArgs("REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := oci.Parse(args[0])
			if err != nil {
				return usageError(cmd, err)
			}
			if output == "" {
				output = ref.Name() + ".oci.tar"
			}
			if !oci.IsArchive(output) {
				return usageError(cmd, fmt.Errorf("--output %q: want a name that ends in .tar", output))
			}
			task := registry.Transfer("saving "+args[0], 0)
			k, err := registry.Client().Copy(cmd.Context(), ref)
			task.End()
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := errors.Join(k.WriteArchive(&b), atomicfile.Replace(output, b.Bytes(), 0o644)); err != nil {
				return fmt.Errorf("archive[%s]: write: %w", output, err)
			}
			_, err = fmt.Fprintf(s.out, "%s\n%s: %s, %s\n", k.Artifact.Ref, output, humanize.BytesExact(int64(b.Len())), attachedText(k))
			return errors.Join(err, printSigners(s.out, k.Artifact))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "Write to this `file`, which ends in .tar (default: NAME.oci.tar, where NAME is the last part of the repository)")
	registry.Bind(cmd.Flags())
	registry.BindVerify(cmd.Flags())
	return cmd
}

func newCmdLoad(s streams) *cobra.Command {
	registry := flags.Registry{Progress: s.progress}
	cmd := &cobra.Command{
		Use:   "load ARCHIVE REF",
		Short: "Push a saved module with its signatures to a registry",
		Long: `Pushes a module from a file of "wasmctl save" to an OCI registry, with everything that is attached to it, and prints its reference
with the digest. Nothing is changed, so that the digests and the signatures stay valid. The tag is set last.

REF is oci://HOST/REPOSITORY[:TAG][@sha256:HEX]; without a tag, it is latest. A digest must be that of the saved module. A file of
another program must be an OCI image layout in a tar file, with exactly one module.`,
		Example: `  wasmctl load greeter.oci.tar oci://registry.internal/acme/greeter:1.2.0
  wasmctl load greeter.oci.tar oci://registry.internal/acme/greeter:1.2.0 --verify-key release.pub`,
		Args: exactArgs("ARCHIVE", "REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasPrefix(args[0], "oci://") {
				return usageError(cmd, errors.New("ARCHIVE comes before REF"))
			}
			ref, err := oci.Parse(args[1])
			if err != nil {
				return usageError(cmd, err)
			}
			a, err := oci.OpenArchive(args[0])
			if err != nil {
				return err
			}
			k, err := registry.Client().CopyArchive(cmd.Context(), a)
			if err != nil {
				return err
			}
			task := registry.Transfer("loading "+args[0], 0)
			ref, err = registry.Client().PushCopy(cmd.Context(), ref, k)
			task.End()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s\n%s\n", ref, attachedText(k))
			return errors.Join(err, printSigners(s.out, k.Artifact))
		},
	}
	registry.Bind(cmd.Flags())
	registry.BindVerify(cmd.Flags())
	return cmd
}

// attachedText returns the number of artifacts that are attached to a module.
func attachedText(k *oci.Copy) string {
	return "with " + humanize.Plural(k.Attached(), "attached artifact")
}
