package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// manifestsOptions are the flags of manifests.
type manifestsOptions struct {
	processOptions

	filename        string
	name, namespace string
	image           string
	replicas        int32
	modules         string
	podMonitor      bool
	output          string
}

func newCmdManifests(s streams) *cobra.Command {
	o := &manifestsOptions{processOptions: processOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "manifests -f FILE",
		Short: "Print what runs a file of controllers in a cluster",
		Long: `Prints, for kubectl apply, what runs the controllers of a file in a cluster: Namespace, ServiceAccount, the least RBAC that they and
their watches need, the file and the modules as ConfigMaps, a Deployment with probes, limits and no rights on its node, and a
Service. With several replicas there are a Lease to be elected by and a PodDisruptionBudget.

The cluster is asked which resources the kinds are, and nothing is sent to it; where it does not have a kind, or there is none, they
are guessed, and it is said. Variables of the environment in the file are put in as
they are now. With --output-dir there are a file for each object and a kustomization.yaml, to be a base for your own.

Modules come from a ConfigMap if they fit into one; else put them into the image (--modules image: see the Dockerfile) or on a
volume (--modules claim=NAME), as NAME.wasm, where NAME is the controller's.`,
		Example: `  wasmctl manifests -f controllers.yaml --image registry.example/wasmctl:1.0 | kubectl apply -f -
  wasmctl manifests -f controllers.yaml --replicas 2 --output-dir deploy/base`,
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
	f.StringVarP(&o.filename, "filename", "f", "", "YAML file of controllers, as for wasmctl run")
	f.StringVar(&o.image, "image", "wasmctl:"+version, "image that runs; the Dockerfile makes one")
	f.StringVar(&o.name, "name", "wasmctl", "name of the objects")
	f.StringVar(&o.namespace, "namespace", "wasmctl-system", "namespace of the objects")
	f.Int32Var(&o.replicas, "replicas", 1, "how many processes there are; from 2 on they elect a leader")
	f.StringVar(&o.modules, "modules", deploy.FromConfigMap, "where modules come from: configmap, image, or claim=NAME of a PersistentVolumeClaim")
	f.BoolVar(&o.podMonitor, "pod-monitor", false, "add a PodMonitor: for clusters with the Prometheus operator")
	f.StringVar(&o.output, "output-dir", "", "write a file for each object, and a kustomization.yaml, into this directory")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster that is asked for kinds")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("output-dir")
	return cmd
}

func (o *manifestsOptions) validate() error {
	var errs []error
	if o.filename == "" {
		errs = append(errs, errors.New("--filename is needed"))
	}
	for flag, name := range map[string]string{"name": o.name, "namespace": o.namespace} {
		if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
			errs = append(errs, fmt.Errorf("--%s %q: %s", flag, name, bad[0]))
		}
	}
	if o.replicas < 1 {
		errs = append(errs, fmt.Errorf("--replicas %d: want 1 or more", o.replicas))
	}
	if source, claim := o.source(); source == "" || source == deploy.FromClaim && claim == "" {
		errs = append(errs, fmt.Errorf("--modules %q: want configmap, image or claim=NAME", o.modules))
	}
	return errors.Join(errs...)
}

// source reads --modules; "" for what is none of its values.
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

func runManifests(ctx context.Context, o *manifestsOptions) error {
	f, err := readControllers(o.filename)
	if err != nil {
		return withCode(exitUsage, err)
	}
	c := &deploy.Config{Name: o.name, Namespace: o.namespace, Image: o.image, Replicas: o.replicas, PodMonitor: o.podMonitor}
	c.Source, c.Claim = o.source()
	if err := o.rights(ctx, f, c); err != nil {
		return err
	}
	if err := f.contain(c); err != nil {
		return withCode(exitUsage, err)
	}
	if err := c.Validate(); err != nil {
		return withCode(exitUsage, err)
	}
	if o.output != "" {
		return writeBase(o.output, c.Objects())
	}
	for _, object := range c.Objects() {
		b, err := toYAML(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.streams.out, "---\n%s", b); err != nil {
			return err
		}
	}
	return nil
}

// rights finds out what the controllers and the process may do.
func (o *manifestsOptions) rights(ctx context.Context, f *controllersFile, c *deploy.Config) error {
	kinds := newGuessing(&o.processOptions)
	for i, at := range f.read.Controllers {
		l, err := f.options[i].least(ctx, kinds)
		if err != nil {
			return withCode(exitCode(err), fmt.Errorf("%s:%d: controller[%s]: %w", f.path, at.Line, at.Name, err))
		}
		c.Rights = append(c.Rights, l.rules...)
	}
	c.Rights = append(c.Rights, grant.EventRules(c.Namespace)...)
	kinds.tell(o.streams)
	return nil
}

// contain puts modules and files of settings where the container has them.
func (f *controllersFile) contain(c *deploy.Config) error {
	flags, _, _ := newFlags()
	for _, flag := range []string{"kubeconfig", "context", "dev", "dev-data-dir"} {
		if len(f.read.Process[flag]) > 0 {
			return fmt.Errorf("%s: process: %s: in a cluster the pod's service account is used; leave it out", f.path, runfile.KeyOf(flag))
		}
	}
	out := &runfile.File{Process: f.read.Process}
	c.Files = map[string][]byte{}
	if c.Source == deploy.FromConfigMap {
		c.Modules = map[string][]byte{}
	}
	for _, at := range f.read.Controllers {
		wasm, err := readModule(at.Module)
		if err != nil {
			return err
		}
		if c.Modules != nil {
			c.Modules[at.Name+".wasm"] = wasm
		}
		at.Module = path.Join(deploy.ModuleDir, at.Name+".wasm")
		for flag, values := range at.Values {
			if !runfile.IsPath(flags.Controller.Lookup(flag)) {
				continue
			}
			content, err := os.ReadFile(values[0])
			if err != nil {
				return fmt.Errorf("%s:%d: controller[%s]: %s: %w", f.path, at.Line, at.Name, runfile.KeyOf(flag), err)
			}
			name := at.Name + "-" + flag + ".yaml"
			c.Files[name], at.Values[flag] = content, []string{path.Join(deploy.ConfigDir, name)}
		}
		out.Controllers = append(out.Controllers, at)
	}
	var err error
	c.File, err = out.Format(flags)
	return err
}

// toYAML writes an object as kubectl would have it: without what only a server
// fills in.
func toYAML(object any) ([]byte, error) {
	fields, ok := object.(map[string]any)
	if !ok {
		var err error
		if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
			return nil, err
		}
	}
	delete(fields, "status")
	prune(fields)
	return yaml.Marshal(fields)
}

// prune takes out nulls and empty maps, which Go's types leave behind; an empty
// map that means something is that of an emptyDir.
func prune(fields map[string]any) {
	for key, value := range fields {
		switch v := value.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			if prune(v); len(v) == 0 && key != "emptyDir" {
				delete(fields, key)
			}
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					prune(m)
				}
			}
		}
	}
}

// writeBase writes a kustomize base: a file for each object.
func writeBase(dir string, objects []any) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	written := map[string]bool{}
	var base bytes.Buffer
	base.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, object := range objects {
		b, err := toYAML(object)
		if err != nil {
			return err
		}
		var head struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal(b, &head); err != nil {
			return err
		}
		name := strings.ToLower(head.Kind + "-" + strings.ReplaceAll(head.Metadata.Name, ":", "-"))
		if written[name] { // Roles of one name in several namespaces
			name += "-" + head.Metadata.Namespace
		}
		written[name] = true
		name += ".yaml"
		if err := project.ReplaceFile(filepath.Join(dir, name), b); err != nil {
			return err
		}
		fmt.Fprintf(&base, "- %s\n", name)
	}
	return project.ReplaceFile(filepath.Join(dir, "kustomization.yaml"), base.Bytes())
}
