// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// buildOptions are the flags of build.
type buildOptions struct {
	dir       string
	toolchain string
	file      string
	output    string
	sdk       string
	main      operator.Main
	goFlags   project.GoFlags
	roles     []string
	objects   []string
	files     []string
	namespace string
	cacheDir  string
	streams   streams
}

func newCmdBuild(s streams) *cobra.Command {
	o := &buildOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "build [DIR] [-- ARGS...]",
		Short: "Build a project into a module",
		Long: `Builds the project in DIR (default: the current directory) with the flags that its toolchain needs, and writes the manifest into
the module. The toolchain is Rust if DIR has a Cargo.toml, and Go if it has Go files, unless --toolchain names another one. Builds are
reproducible.

An operator that uses controller-runtime is built without changes: wasmctl replaces controller-runtime for this build, and takes the
rights of the module from the +kubebuilder:rbac markers, DIR/config/rbac/role.yaml and the files of --roles, and the settings of its
webhooks from the +kubebuilder:webhook markers, DIR/config/webhook and the files of --roles. The manifest follows from the calls that
main makes, so the module stores the arguments after "--" and the environment of --env. The keys args, env, objects, roles and without
of DIR/wasmctl.yaml have the same effect as the flags.

For Go and TinyGo, the build takes the tags and the variables of --tags and --ldflags, of the keys tags and ldflags, or of GOFLAGS. A
flag of GOFLAGS that it cannot take, and that would make another program, is an error.

Any module can read only the files that are part of it: those of --files and --namespace (keys files and namespace). Put no secrets
there: everybody who has the module can read them.`,
		Example: `  # NAME.wasm in the project's folder
  wasmctl build

  wasmctl build examples/webapp --toolchain tinygo --file webapp.wasm

  # An operator whose main has flags, and reads its environment
  wasmctl build --env POD_NAMESPACE=shop -- --default-image=example.com/web:1

  # One that reads a file, and the namespace of its service account
  wasmctl build --files /etc/app/config.yaml=config.yaml --namespace shop -- --config=/etc/app/config.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, o.main.Args = args[:at], args[at:]
			}
			if o.dir, err = dirOf(cmd, args); err != nil {
				return err
			}
			if _, err := project.ParseToolchain(o.toolchain); err != nil {
				return usageError(cmd, err)
			}
			return runBuild(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.toolchain, "toolchain", "", strings.Join(project.Toolchains, ", ")+" (default: detected from the files in DIR)")
	f.StringVarP(&o.file, "file", "f", "", "Write the module to this `file` (default: NAME.wasm in DIR)")
	f.StringVar(&o.sdk, "sdk", "", "Build an operator with the replacement of controller-runtime in this wasmctl `checkout` (default: as for wasmctl new)")
	f.StringToStringVar(&o.main.Env, "env", nil, "Environment `NAME=VALUE` of an operator's main")
	f.StringSliceVar(&o.roles, "roles", nil, "Also take the program's rights from the Roles and ClusterRoles in this `file`, and an operator's webhooks from webhook configurations; repeatable")
	f.StringSliceVar(&o.objects, "objects", nil, "Objects in this `file` that an operator's main sees before it starts the manager; repeatable")
	f.StringArrayVar(&o.files, "files", nil, "`PATH=FILE`: the module reads FILE at PATH, an absolute one; repeatable")
	f.StringVar(&o.namespace, "namespace", "", "The module reads this `name` in the namespace file of a service account")
	f.StringSliceVar(&o.main.Without, "without", nil, "Build an operator although its main sets up "+strings.Join(operator.Leavable, ", ")+", which have no effect in a module; KIND.GROUP: tell main that the API server lacks it")
	f.StringSliceVar(&o.goFlags.Tags, "tags", nil, "Build `tags`, as for go build (default: those of GOFLAGS)")
	f.StringVar(&o.goFlags.LDFlags, "ldflags", "", `Variables to set, as for go build: "-X main.version=1.2" (default: those of GOFLAGS)`)
	f.StringVar(&o.cacheDir, "cache-dir", "", `Cache the compiled code in this directory, for wasmctl run; "none" turns it off (default: as wasmctl run)`)
	outputFlag(cmd, &o.output, "text", "json")
	_ = cmd.RegisterFlagCompletionFunc("without", cobra.FixedCompletions(operator.Leavable, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("toolchain", cobra.FixedCompletions(project.Toolchains, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runBuild(ctx context.Context, o *buildOptions) error {
	po := project.Options{Toolchain: project.Toolchain(o.toolchain), Output: o.file, SDK: o.sdk, Main: o.main, Go: o.goFlags, Roles: o.roles, Objects: o.objects, Files: o.files, Namespace: o.namespace, Stderr: o.streams.err}
	po.CacheDir, po.CacheKey = flags.CodeCache(o.cacheDir)
	if version != "dev" {
		po.Release = version
	}
	task := o.streams.progress.Start("building " + o.dir)
	res, err := project.Build(ctx, o.dir, po)
	task.End()
	switch {
	case errors.Is(err, project.ErrNoProject):
		return failure.Usage.Wrap(err)
	case err != nil:
		return engine.ModuleError(err)
	}
	warn(o.streams, res.File, res.Described)
	if o.output == "json" {
		return printer.JSON(o.streams.out, res)
	}
	has := humanize.Plural(len(res.Manifests), "controller")
	if len(res.Manifests) == 1 {
		has = fmt.Sprintf("manifest of %q", res.Manifests[0].Name)
	}
	_, err = fmt.Fprintf(o.streams.out, "%s: %s, %s, %s\nbuilt in %v by %s\n",
		res.File, humanize.BytesExact(res.Size), has, res.Digest, res.Took.Round(100*time.Millisecond), res.Version)
	if len(res.Manifests) > 1 {
		_, err = fmt.Fprintf(o.streams.out, "wasmctl run runs all of them, or one with --controller: %s\n", strings.Join(namesIn(res.Manifests), ", "))
	}
	return err
}
