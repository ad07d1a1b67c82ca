// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/oci/signature"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Formats of push.
const (
	formatArtifact = "artifact"
	formatImage    = "image"
)

// pushOptions are the flags of push.
type pushOptions struct {
	ref      oci.Ref
	module   string
	format   string
	registry flags.Registry
	streams  streams
}

func newCmdPush(s streams) *cobra.Command {
	o := &pushOptions{streams: s, registry: flags.Registry{Progress: s.progress}}
	cmd := &cobra.Command{
		Use:   "push REF [MODULE]",
		Short: "Push a module to an OCI registry",
		Long: `Pushes a module to an OCI registry and prints its reference with the digest. MODULE is a file (default: the one that "wasmctl build"
writes in the current directory). REF is oci://HOST/REPOSITORY[:TAG]; without a tag, it is latest. The artifact has the CNCF's layout
for WebAssembly. The same module always gets the same digest; SOURCE_DATE_EPOCH, if set, is noted in it.

Some registries refuse artifacts. The error says so; --format image pushes the module as the only layer of an image instead.

Credentials come from docker login or podman login, with their helpers.`,
		Example: `  wasmctl build && wasmctl push oci://ghcr.io/acme/greeter:1.2.0
  wasmctl push oci://localhost:5000/greeter greeter.wasm --insecure-registry localhost:5000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("REF is missing"))
			}
			return maxArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && strings.HasPrefix(args[1], "oci://") {
				return usageError(cmd, errors.New("REF comes before MODULE"))
			}
			var err error
			if o.ref, err = oci.Parse(args[0]); err != nil {
				return usageError(cmd, err)
			}
			if o.format != formatArtifact && o.format != formatImage {
				return usageError(cmd, fmt.Errorf("--format %q: want %s or %s", o.format, formatArtifact, formatImage))
			}
			if len(args) > 1 {
				o.module = args[1]
			} else if o.module, err = project.Built("."); err != nil {
				return usageError(cmd, err)
			}
			return runPush(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", formatArtifact, "Push in this `format`: artifact, or image for registries that refuse artifacts")
	o.registry.Bind(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{formatArtifact, formatImage}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runPush(ctx context.Context, o *pushOptions) error {
	wasm, err := wasmctl.File(o.module).Read(ctx)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: build it with wasmctl build, or name the module", err)
		}
		return err
	}
	info := load.Inspect(ctx, wasm)
	if len(info.Problems) > 0 {
		return failure.Module.Wrap(fmt.Errorf("module[%s]: cannot be loaded: %s", o.module, info.Problems[0]))
	}
	push := oci.PushOptions{Image: o.format == formatImage, Annotations: oci.Describe(info.ABI, info.Manifest)}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return failure.Usage.Wrap(fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds", epoch))
		}
		push.Created = time.Unix(seconds, 0)
	}
	task := o.registry.Transfer("pushing "+o.module, int64(len(wasm)))
	ref, err := o.registry.Client().Push(ctx, o.ref, wasm, push)
	task.End()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.streams.out, ref)
	return err
}

func newCmdPull(s streams) *cobra.Command {
	registry := flags.Registry{Progress: s.progress}
	var output string
	cmd := &cobra.Command{
		Use:   "pull REF",
		Short: "Pull a module from an OCI registry",
		Long: `Pulls a module from an OCI registry into a file, checks all digests, and prints the reference with the digest of what was pulled.
REF is oci://HOST/REPOSITORY[:TAG][@sha256:HEX]. The digest, if given, is what counts. TAG can be a range of versions: ^1.2, ~1.2.3
or 1.x.`,
		Example: `  wasmctl pull oci://ghcr.io/acme/greeter:1.2.0
  wasmctl pull 'oci://ghcr.io/acme/greeter:^1.2' -o module.wasm`,
		Args: exactArgs("REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := oci.Parse(args[0])
			if err != nil {
				return usageError(cmd, err)
			}
			task := registry.Transfer("pulling "+args[0], 0)
			a, err := registry.Client().Pull(cmd.Context(), ref)
			task.End()
			if err != nil {
				return err
			}
			if a.Stale != nil {
				return a.Stale // the file may be used much later, so it must not be outdated
			}
			if output == "" {
				output = ref.Name() + ".wasm"
			}
			if err := atomicfile.Replace(output, a.Wasm, 0o644); err != nil {
				return fmt.Errorf("module[%s]: write: %w", output, err)
			}
			_, err = fmt.Fprintf(s.out, "%s\n%s: %s, %s\n", a.Ref, output, humanize.BytesExact(int64(len(a.Wasm))), a.Layer)
			return errors.Join(err, printSigners(s.out, a))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "Write to this `file` (default: NAME.wasm, where NAME is the last part of the repository)")
	registry.Bind(cmd.Flags())
	registry.BindVerify(cmd.Flags())
	return cmd
}

// printSigners prints the verified signers of an artifact.
func printSigners(out io.Writer, a *oci.Artifact) error {
	if a.Proof == nil {
		return nil
	}
	signers, err := signersOf(a)
	for _, signer := range signers {
		_, err = fmt.Fprintf(out, "signed by %s\n", signer)
	}
	return err
}

// signersOf returns the verified signers of an artifact with a proof.
func signersOf(a *oci.Artifact) ([]string, error) {
	proof, err := signature.ParseProof(a.Proof)
	if err != nil {
		return nil, err
	}
	return proof.Signers(a.Layer)
}
