// Package deploy says what a cluster needs to run a process of wasmctl: the
// objects that wasmctl manifests prints, and how these are written.
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

// Where things are in the container.
const (
	ConfigDir  = "/etc/wasmctl"
	ModuleDir  = "/modules"
	cacheDir   = "/var/cache/wasmctl"
	runDir     = "/run/wasmctl"
	configFile = "controllers.yaml"

	metricsPort = 8080
	healthPort  = 8081
)

// Ways in which modules come into the container.
const (
	// FromConfigMap puts each into a ConfigMap: for modules that fit into one,
	// compressed.
	FromConfigMap = "configmap"
	// FromImage expects them in the container's image, in ModuleDir.
	FromImage = "image"
	// FromClaim expects them on a PersistentVolumeClaim.
	FromClaim = "claim"
)

// MaxConfigMap is how many bytes the module of a ConfigMap may have: the API
// server's limit of 1 MiB, less what the rest needs.
const MaxConfigMap = 1<<20 - 16<<10

// Config says what is to run, and how. All fields but those that say otherwise
// are needed.
type Config struct {
	// Name is that of all objects, Namespace where they are.
	Name, Namespace string
	Image           string
	// Replicas is how many processes there are; from 2 on they elect a leader.
	Replicas int32
	// Shards, if not 0, is how many parts the objects are split into, which the
	// replicas share instead.
	Shards int
	// ShareObjects lets the replicas of wasmctl serve share the objects of each Reconciler.
	ShareObjects bool
	// MaxReplicas adds an autoscaler, which adds replicas up to these; 0 adds none.
	MaxReplicas int32
	// Drain is how long running reconciles may go on after a stop; 0 is the default.
	Drain time.Duration
	// File is the file of controllers, with modules in ModuleDir.
	File []byte
	// Files are further files in ConfigDir, by name; may be empty.
	Files map[string][]byte
	// Modules are the modules, or what Pack makes of them, by the names of their
	// controllers; nil unless Source is FromConfigMap.
	Modules map[string][]byte
	// Source is one of FromConfigMap, FromImage and FromClaim.
	Source string
	// Claim is the name of the PersistentVolumeClaim; empty unless Source is FromClaim.
	Claim string
	// CRDs are those of wasmctl serve, which is run then; nil where File is.
	CRDs []any
	// Rights are what the processes may do.
	Rights []abi.Capability
	// PodMonitor adds one: for clusters with the Prometheus operator.
	PodMonitor bool
}

// Objects returns the objects, in an order in which they can be made. Check a
// Config with Validate first.
func (c *Config) Objects() []any {
	list := append([]any{c.namespace()}, c.CRDs...)
	list = append(list, c.rbac()...)
	if c.serves() {
		list = append(list, c.networkPolicy())
	} else {
		list = append(list, c.controllers())
	}
	list = append(list, c.modules()...)
	list = append(list, c.deployment(), c.service())
	list = append(list, c.replicated()...)
	if c.PodMonitor {
		list = append(list, c.podMonitor())
	}
	return list
}

// serves reports whether wasmctl serve is run.
func (c *Config) serves() bool { return c.CRDs != nil }

// Validate says what cannot be run.
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

// Pack returns a module as a ConfigMap has it: compressed with gzip, if it does not
// fit otherwise.
func Pack(wasm []byte) []byte {
	if len(wasm) <= MaxConfigMap {
		return wasm
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one
	_, _ = w.Write(wasm)                                  // to memory
	_ = w.Close()
	return b.Bytes()
}

// meta is the metadata of an object; suffix tells objects of a kind apart.
func (c *Config) meta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: c.Name + suffix, Namespace: c.Namespace, Labels: c.labels()}
}

// labels are Kubernetes' recommended ones.
func (c *Config) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "wasmctl", "app.kubernetes.io/instance": c.Name}
}

// namespace is that of the objects, under the strictest of Kubernetes' Pod
// Security Standards.
func (c *Config) namespace() any {
	labels := c.labels()
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Labels: labels},
	}
}

// rbac is the service account, what the controllers need, and the Leases of replicas.
func (c *Config) rbac() []any {
	return grant.RBAC(grant.Account{Namespace: c.Namespace, Name: c.Name}, slices.Concat(c.Rights, c.leaseRights()))
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

// modules are a ConfigMap for each module: one holds little.
func (c *Config) modules() (list []any) {
	for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
		list = append(list, &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: c.meta(moduleSuffix + name),
			BinaryData: map[string][]byte{ModuleFile(name): c.Modules[name]},
		})
	}
	return list
}

// ModuleFile is the name of the file of a controller's module, in ModuleDir.
func ModuleFile(controller string) string { return controller + ".wasm" }

// moduleSuffix comes between the names in the name of the ConfigMap of a module.
const moduleSuffix = "-module-"

// moduleName is the name of the ConfigMap of a controller's module.
func (c *Config) moduleName(controller string) string { return c.Name + moduleSuffix + controller }

// args are those of the container.
func (c *Config) args() []string {
	args := []string{"serve"}
	if !c.serves() {
		args = []string{"run", "--filename", path.Join(ConfigDir, configFile)}
	}
	args = append(args,
		"--cache-dir", cacheDir,
		"--log-format", "json", "--metrics-address", fmt.Sprintf(":%d", metricsPort), "--health-address", fmt.Sprintf(":%d", healthPort),
	)
	return append(args, c.replicaArgs()...)
}
