// SPDX-License-Identifier: Apache-2.0

// Package deploy creates the objects that a cluster needs to run wasmctl, for wasmctl manifests,
// and writes them.
package deploy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// Paths in the container.
const (
	ConfigDir  = "/etc/wasmctl"
	ModuleDir  = "/modules"
	cacheDir   = "/var/cache/wasmctl"
	runDir     = "/run/wasmctl"
	configFile = "controllers.yaml"

	metricsPort = 8080
	healthPort  = 8081
	webhookPort = 9443
)

// Ways to get modules into the container.
const (
	// FromConfigMap puts each module into a ConfigMap. It must fit, compressed.
	FromConfigMap = "configmap"
	// FromImage expects the modules in the container's image, in ModuleDir.
	FromImage = "image"
	// FromClaim expects the modules on a PersistentVolumeClaim.
	FromClaim = "claim"
)

// MaxConfigMap is the maximum size of a module in a ConfigMap, in bytes: the API server's limit of
// 1 MiB, less the size of the rest.
const MaxConfigMap = 1<<20 - 16<<10

// Config describes the deployment. All fields are required unless they say otherwise.
type Config struct {
	// Name is the name of all objects, and Namespace is their namespace.
	Name, Namespace string
	Image           string
	// Replicas is the number of processes. Two or more elect a leader.
	Replicas int32
	// Shards, if not 0, is the number of parts that the objects are split into. The replicas share
	// these instead of electing a leader.
	Shards int
	// ShareObjects makes the replicas of wasmctl serve share the objects of each Reconciler.
	ShareObjects bool
	// MaxReplicas adds an autoscaler with this maximum. If 0, there is none.
	MaxReplicas int32
	// Drain is the time that running reconciles have after a stop. If 0, it is the default.
	Drain time.Duration
	// File is the file of controllers, with modules in ModuleDir.
	File []byte
	// Files are further files in ConfigDir, by name. Optional.
	Files map[string][]byte
	// Modules are the modules, or the results of Pack, by the names of their controllers. It must
	// be nil unless Source is FromConfigMap.
	Modules map[string][]byte
	// Source is one of FromConfigMap, FromImage and FromClaim.
	Source string
	// Claim is the name of the PersistentVolumeClaim. It must be empty unless Source is FromClaim.
	Claim string
	// CRDs are those of wasmctl serve, which then runs. It must be nil if File is set.
	CRDs []any
	// RegistryAllow are the values of the flag of wasmctl serve with this name. Optional.
	RegistryAllow []string
	// Args are further arguments of wasmctl serve. Optional.
	Args []string
	// Rights are the rights of the processes.
	Rights []abi.Capability
	// Webhooks makes the processes serve the webhooks of their modules.
	Webhooks bool
	// Converts are the names of the CRDs whose objects the modules convert. Unused with CRDs.
	Converts []string
	// Monitors are kinds of objects of the Prometheus operator, PodMonitor or ServiceMonitor, to add.
	Monitors []string
}

// Objects returns the objects, in an order in which they can be created. The caller must call
// Validate first.
func (c *Config) Objects() []any {
	list := append(append([]any{c.namespace()}, c.webhookConfigurations()...), grant.RBAC(grant.Account{Namespace: c.Namespace, Name: c.Name}, slices.Concat(c.Rights, c.leaseRights(), c.webhookRights()))...)
	component := ComponentRun
	if c.serves() {
		component = ComponentServe
		list = append(list, c.networkPolicy())
	} else {
		list = append(list, c.controllers())
	}
	list = append(list, c.modules()...)
	list = append(list, c.deployment(), c.service())
	list = append(list, c.replicated()...)
	for _, kind := range c.Monitors {
		list = append(list, c.monitor(kind))
	}
	return slices.Insert(Mark(list, c.Namespace, c.Name, component), 1, c.CRDs...) // installations share the CRDs
}

// serves reports whether the deployment runs wasmctl serve.
func (c *Config) serves() bool { return c.CRDs != nil }

// Validate returns an error for a configuration that cannot run.
func (c *Config) Validate() error {
	errs := []error{c.validateReplicas()}
	for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
		if size := len(c.Modules[name]); size > MaxConfigMap {
			errs = append(errs, fmt.Errorf("controller[%s]: the module needs %d KiB, compressed, and a ConfigMap holds %d KiB: put the modules into the image (--modules %s, see the Dockerfile) or on a volume (--modules %s=NAME)",
				name, size>>10, MaxConfigMap>>10, FromImage, FromClaim))
		}
		if bad := validation.IsDNS1123Subdomain(c.moduleName(name)); len(bad) > 0 {
			errs = append(errs, fmt.Errorf("controller[%s]: cannot be part of the name of a ConfigMap: %s", name, bad[0]))
		}
	}
	return errors.Join(errs...)
}

// Pack returns a module in the form that a ConfigMap stores: compressed with gzip if it would not
// fit otherwise.
func Pack(wasm []byte) []byte {
	if len(wasm) <= MaxConfigMap {
		return wasm
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(wasm)                                  // to memory
	_ = w.Close()
	return b.Bytes()
}

// meta returns the metadata of an object. suffix distinguishes objects of a kind.
func (c *Config) meta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: c.Name + suffix, Namespace: c.Namespace, Labels: c.labels()}
}

// labels returns the labels that Kubernetes recommends.
func (c *Config) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "wasmctl", "app.kubernetes.io/instance": c.Name}
}

// namespace returns the Namespace, with the strictest of Kubernetes' Pod Security Standards.
func (c *Config) namespace() any {
	labels := c.labels()
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Labels: labels},
	}
}

func (c *Config) controllers() any {
	data := map[string]string{configFile: string(c.File)}
	for name, content := range c.Files {
		data[name] = string(content)
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: c.meta("-controllers"), Data: data,
	}
}

// modules returns a ConfigMap for each module, because a ConfigMap is small.
func (c *Config) modules() (list []any) {
	for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
		list = append(list, &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: c.meta(moduleSuffix + name),
			BinaryData: map[string][]byte{ModuleFile(name): c.Modules[name]},
		})
	}
	return list
}

// ModuleFile returns the name of a controller's module file in ModuleDir.
func ModuleFile(controller string) string { return controller + ".wasm" }

// moduleSuffix is between the names in the name of a module's ConfigMap.
const moduleSuffix = "-module-"

// moduleName returns the name of the ConfigMap of a controller's module.
func (c *Config) moduleName(controller string) string { return c.Name + moduleSuffix + controller }

// registryAllow begins an argument with an item of RegistryAllow.
const registryAllow = "--registry-allow="

// args returns the arguments of the container.
func (c *Config) args() []string {
	args := []string{"serve"}
	if !c.serves() {
		args = []string{"run", "--filename", path.Join(ConfigDir, configFile)}
	}
	args = append(args,
		"--cache-dir", cacheDir,
		"--log-format", "json", "--metrics-address", fmt.Sprintf(":%d", metricsPort), "--health-address", fmt.Sprintf(":%d", healthPort),
	)
	for _, pattern := range c.RegistryAllow {
		args = append(args, registryAllow+pattern)
	}
	return slices.Concat(args, c.replicaArgs(), c.webhookArgs(), c.Args)
}
