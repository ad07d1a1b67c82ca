// Package deploy says what a cluster needs to run a process of wasmctl: the
// objects that wasmctl manifests prints, and how these are written.
package deploy

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// FromConfigMap puts them into a ConfigMap: for modules that fit into one.
	FromConfigMap = "configmap"
	// FromImage expects them in the container's image, in ModuleDir.
	FromImage = "image"
	// FromClaim expects them on a PersistentVolumeClaim.
	FromClaim = "claim"
)

// MaxConfigMap is how many bytes the modules of one ConfigMap may have
// together: the API server's limit of 1 MiB, less what the rest needs.
const MaxConfigMap = 1<<20 - 16<<10

// Config says what is to run, and how. All fields but those that say otherwise
// are needed.
type Config struct {
	// Name is that of all objects, Namespace where they are.
	Name, Namespace string
	Image           string
	// Replicas is how many processes there are; from 2 on they elect a leader.
	Replicas int32
	// File is the file of controllers, with modules in ModuleDir.
	File []byte
	// Files are further files in ConfigDir, by name; may be empty.
	Files map[string][]byte
	// Modules are the modules by their names in ModuleDir; nil unless Source is
	// FromConfigMap.
	Modules map[string][]byte
	// Source is one of FromConfigMap, FromImage and FromClaim.
	Source string
	// Claim is the name of the PersistentVolumeClaim; empty unless Source is FromClaim.
	Claim string
	// Rights are what the processes may do.
	Rights []abi.Capability
	// PodMonitor adds one: for clusters with the Prometheus operator.
	PodMonitor bool
}

// Objects returns the objects, in an order in which they can be made. Check a
// Config with Validate first.
func (c *Config) Objects() []any {
	list := append([]any{c.namespace()}, c.rbac()...)
	list = append(list, c.controllers())
	if c.Source == FromConfigMap {
		list = append(list, c.modules())
	}
	list = append(list, c.deployment(), c.service())
	if c.Replicas > 1 {
		list = append(list, c.disruptionBudget())
	}
	if c.PodMonitor {
		list = append(list, c.podMonitor())
	}
	return list
}

// Validate says what cannot be run.
func (c *Config) Validate() error {
	size := 0
	for _, wasm := range c.Modules {
		size += len(wasm)
	}
	if c.Source == FromConfigMap && size > MaxConfigMap {
		return fmt.Errorf("the modules need %d KiB and a ConfigMap holds %d KiB: put them into the image (--modules %s, see the Dockerfile) or on a volume (--modules %s=NAME)",
			size>>10, MaxConfigMap>>10, FromImage, FromClaim)
	}
	return nil
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

// rbac is the service account, what the controllers need, and, where they elect a
// leader, their Lease.
func (c *Config) rbac() []any {
	rights := c.Rights
	if c.Replicas > 1 {
		rights = append(slices.Clone(rights), grant.LeaseRules(c.Namespace, c.Name)...)
	}
	return grant.RBAC(grant.Account{Namespace: c.Namespace, Name: c.Name}, rights)
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

func (c *Config) modules() any {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: c.meta("-modules"), BinaryData: c.Modules,
	}
}

// args are those of the container.
func (c *Config) args() []string {
	args := []string{
		"run", "--filename", path.Join(ConfigDir, configFile), "--cache-dir", cacheDir,
		"--log-format", "json", "--metrics-address", fmt.Sprintf(":%d", metricsPort), "--health-address", fmt.Sprintf(":%d", healthPort),
	}
	if c.Replicas > 1 {
		args = append(args, "--leader-elect", "--leader-elect-resource-name", c.Name)
	}
	return args
}
