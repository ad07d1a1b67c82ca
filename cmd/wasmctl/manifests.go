// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// manifestsOptions are the flags of manifests.
type manifestsOptions struct {
	process flags.Process
	streams streams

	filename    string
	serve       bool
	installed   deploy.Config // its other fields are set by config
	modules     string
	podMonitor  bool
	output, dir string

	served serveOptions
	passed []*pflag.Flag // of served
}

// Values of --output.
const (
	outputYAML      = "yaml"
	outputKustomize = "kustomize"
	outputHelm      = "helm"
)

func newCmdManifests(s streams) *cobra.Command {
	o := &manifestsOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "manifests -f FILE | --serve",
		Short: "Print the manifests that run a controllers file, or wasmctl serve, in a cluster",
		Long: `Prints the objects that run the controllers of a file in a cluster, for kubectl apply: a Namespace, a ServiceAccount, the minimal
RBAC for the controllers and their watches, ConfigMaps for the file and the modules, a Deployment with probes and limits and without
privileges, and a Service. With several replicas, a Lease for leader election and a PodDisruptionBudget are added. With --shards, all
replicas reconcile and share the objects; a FlowSchema for their Leases and, with --max-replicas, a HorizontalPodAutoscaler are added.
With --webhooks, the processes serve the webhooks of their modules through the Service, and have the rights to register them.

The command looks up the resources of kinds in the cluster and changes nothing there. If the cluster does not know a kind, or no
cluster is configured, it guesses the resource and prints a note. Environment variables in the file are expanded. With --output-dir
it writes one file per object and a kustomization.yaml, as a base for your own.

Each module comes from a ConfigMap if it fits into one, compressed if needed. Use kubectl apply --server-side: without it, kubectl
takes no more than 256 KiB. Otherwise put the modules into the image (--modules image: see the Dockerfile) or on a volume (--modules
claim=NAME), as NAME.wasm, where NAME is the name of the controller.

With --serve, the objects run wasmctl serve, and ConfigMaps are not needed: the CRDs of Reconciler and ClusterReconciler, and a
NetworkPolicy, are added. -o helm writes a chart of them; its values.yaml describes the values.`,
		Example: `  wasmctl manifests -f controllers.yaml --image registry.example/wasmctl:1.0 | kubectl apply --server-side -f -
  wasmctl manifests -f controllers.yaml --replicas 2 --output-dir deploy/base
  wasmctl manifests -f controllers.yaml --replicas 5 --shards --max-replicas 10 | kubectl apply --server-side -f -
  wasmctl manifests --serve --image registry.example/wasmctl:1.0 | kubectl apply --server-side -f -
  wasmctl manifests --serve -o helm --output-dir chart`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return usageError(cmd, err)
			}
			return runManifests(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.filename, "filename", "f", "", "Read the controllers from this YAML `file`, as wasmctl run does")
	f.BoolVar(&o.serve, "serve", false, "Run wasmctl serve instead of the controllers of a file")
	o.bindServe(cmd)
	f.StringVar(&o.modules, "modules", deploy.FromConfigMap, "Load modules from this `source`: configmap, image, or claim=NAME of a PersistentVolumeClaim")
	outputFlag(cmd, &o.output, outputYAML, outputKustomize, outputHelm)
	f.StringVar(&o.dir, "output-dir", "", "Write one file per object and a kustomization.yaml, or with -o helm a chart, to this `directory`")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("output-dir")
	return cmd
}

func (o *manifestsOptions) validate() error {
	var errs []error
	if (o.filename == "") == !o.serve {
		errs = append(errs, errors.New("want --filename or --serve"))
	}
	for flag, name := range map[string]string{"name": o.installed.Name, "namespace": o.installed.Namespace} {
		if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
			errs = append(errs, fmt.Errorf("--%s %q: %s", flag, name, bad[0]))
		}
	}
	if o.installed.Image == "" {
		errs = append(errs, errors.New("--image: must not be empty"))
	}
	if o.installed.Replicas < 1 || o.installed.MaxReplicas < 0 {
		errs = append(errs, fmt.Errorf("--replicas %d, --max-replicas %d: want 1 or more", o.installed.Replicas, o.installed.MaxReplicas))
	}
	if !o.serve && (o.installed.Shards < 0 || o.installed.Shards > slots.Max) {
		errs = append(errs, fmt.Errorf("--shards %d: want 1 to %d", o.installed.Shards, slots.Max))
	}
	errs = append(errs, o.validateServe())
	if source, claim := o.source(); source == "" || source == deploy.FromClaim && claim == "" {
		errs = append(errs, fmt.Errorf("--modules %q: want configmap, image or claim=NAME", o.modules))
	}
	if o.output != outputYAML && o.dir == "" {
		errs = append(errs, fmt.Errorf("--output %s needs --output-dir", o.output))
	}
	if o.output == outputHelm && !o.serve {
		errs = append(errs, errors.New("--output helm needs --serve"))
	}
	return errors.Join(errs...)
}

// source parses --modules. If the value is invalid, source is "".
func (o *manifestsOptions) source() (source, claim string) {
	switch o.modules {
	case deploy.FromConfigMap, deploy.FromImage:
		return o.modules, ""
	}
	if claim, ok := strings.CutPrefix(o.modules, deploy.FromClaim+"="); ok {
		return deploy.FromClaim, claim
	}
	return "", ""
}

// config returns the configuration of the flags.
func (o *manifestsOptions) config(ctx context.Context) (*deploy.Config, error) {
	c := new(o.installed)
	c.ShareObjects, c.RegistryAllow, c.Args = o.served.share == shareObjects, o.served.allowed, o.serveArgs()
	if err := o.fill(ctx, c); err != nil {
		return nil, err
	}
	if o.podMonitor {
		c.Monitors = []string{deploy.PodMonitor}
		o.checkPodMonitor(ctx)
	}
	return c, nil
}

func runManifests(ctx context.Context, o *manifestsOptions) error {
	c, err := o.config(ctx)
	if err != nil {
		return err
	}
	switch {
	case o.output == outputHelm:
		files, err := c.Chart(chartVersion(), serveRights)
		return cmp.Or(err, deploy.WriteFiles(o.dir, files))
	case o.dir != "":
		return deploy.WriteBase(o.dir, c.Objects())
	}
	return c.Write(o.streams.out)
}

// checkPodMonitor prints a note if there is a cluster that does not know PodMonitors.
func (o *manifestsOptions) checkPodMonitor(ctx context.Context) {
	kinds := newGuess(&o.process)
	_, _, _ = kinds.Of(ctx, &abi.Watch{Group: "monitoring.coreos.com", Version: "v1", Kind: deploy.PodMonitor}) // it guesses instead of failing
	if kinds.Resolver != nil && len(kinds.Guessed) > 0 {
		_, _ = fmt.Fprintln(o.streams.err, "note: the cluster has no PodMonitors: install the Prometheus operator first, or omit --pod-monitor; kubectl apply fails for this object, and only for it")
	}
}

// chartVersion returns the version of the Helm chart, which must be a semantic version.
func chartVersion() string {
	if version == "dev" {
		return "0.0.0-dev"
	}
	return strings.TrimPrefix(version, "v")
}

// serveRights returns the rights that wasmctl serve needs if it runs in this namespace.
func serveRights(namespace string) []abi.Capability {
	return append(serve.Rights(nil, false), grant.EventRules(namespace)...)
}

// fill sets the CRDs or the controllers of the file, and the rights.
func (o *manifestsOptions) fill(ctx context.Context, c *deploy.Config) (err error) {
	if o.serve {
		c.Rights = serveRights(c.Namespace)
		c.CRDs, err = v1alpha1.CRDObjects()
		return errors.Join(err, failure.Usage.Wrap(c.Validate()))
	}
	f, err := flags.ReadFile(o.filename)
	if err != nil {
		return failure.Usage.Wrap(err)
	}
	c.Source, c.Claim = o.source()
	if err := o.rights(ctx, f, c); err != nil {
		return err
	}
	return failure.Usage.Wrap(errors.Join(contain(ctx, f, c), replicasOf(f, c), c.Validate()))
}

// replicasOf sets the fields about replicas from the process options of a file.
func replicasOf(f *flags.File, c *deploy.Config) error {
	c.Drain = f.Drain()
	leader := f.Leader()
	if c.Shards == 0 {
		c.Shards = leader.Shards
	}
	if c.Shards > 0 && leader.Elect {
		return fmt.Errorf("%s: process: %s: remove it: with --shards all replicas reconcile", f.Path, runfile.KeyOf("leader-elect"))
	}
	return nil
}

// rights adds the rights that the controllers and the process need.
func (o *manifestsOptions) rights(ctx context.Context, f *flags.File, c *deploy.Config) error {
	kinds := newGuess(&o.process)
	defer o.streams.progress.Start("finding the rights of " + o.filename).End()
	for i, at := range f.Controllers {
		l, _, err := least(ctx, kinds, f.Registry(), f.Specs[i])
		if err != nil {
			return fmt.Errorf("%s:%d: controller[%s]: %w", f.Path, at.Line, at.Spec.Name, err)
		}
		c.Rights, c.Converts = append(c.Rights, l.Rules...), append(c.Converts, l.Converts...)
	}
	c.Rights = append(c.Rights, grant.EventRules(c.Namespace)...)
	tellGuessed(o.streams, kinds)
	return nil
}

// contain replaces the paths of modules, settings and grants by their paths in the container, and
// collects their contents.
func contain(ctx context.Context, f *flags.File, c *deploy.Config) error {
	for _, flag := range []string{"kubeconfig", "context", "dev", "dev-data-dir"} {
		if len(f.Process[flag]) > 0 {
			return fmt.Errorf("%s: process: %s: remove it: in a cluster, the pod's service account is used", f.Path, runfile.KeyOf(flag))
		}
	}
	out := &runfile.File{Process: f.Process}
	c.Files = map[string][]byte{}
	if c.Source == deploy.FromConfigMap {
		c.Modules = map[string][]byte{}
	}
	for i, file := range f.Process["registry-ca"] {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: process: registryCa: %w", f.Path, err)
		}
		of := fmt.Sprintf("registry-ca-%d.pem", i)
		c.Files[of], out.Process["registry-ca"][i] = content, path.Join(deploy.ConfigDir, of)
	}
	for _, at := range f.Controllers {
		spec, name := &at.Spec, at.Spec.Name
		if spec.Module.Image == "" { // the container pulls images itself
			wasm, err := wasmctl.File(spec.Module.File).Read(ctx)
			if err != nil {
				return err
			}
			if c.Modules != nil {
				c.Modules[name] = deploy.Pack(wasm)
			}
			spec.Module.File = path.Join(deploy.ModuleDir, deploy.ModuleFile(name))
		}
		for key, file := range map[string]*string{"configFile": &spec.ConfigFile, "grantFile": &spec.GrantFile} {
			if *file == "" {
				continue
			}
			content, err := os.ReadFile(*file)
			if err != nil {
				return fmt.Errorf("%s:%s: controller[%s]: %s: %w", f.Path, at.Where(key), name, key, err)
			}
			flag, _ := flags.FlagOf(key)
			of := name + strings.TrimPrefix(flag, "-") + ".yaml"
			c.Files[of], *file = content, path.Join(deploy.ConfigDir, of)
		}
		out.Controllers = append(out.Controllers, at)
	}
	process, _ := flags.ProcessFlags()
	var err error
	c.File, err = out.Format(process)
	return err
}
