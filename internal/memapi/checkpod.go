// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkPod is check for the values in a pod.
func (c *checks) checkPod(value any, at *field.Path) {
	switch v := value.(type) {
	case *corev1.PodSpec:
		c.podSpec(v, at)
	case *corev1.Container:
		c.container(v, at)
	case *corev1.ContainerPort:
		c.messages(at.Child("containerPort"), v.ContainerPort, utilvalidation.IsValidPortNum(int(v.ContainerPort)))
		if v.HostPort != 0 {
			c.messages(at.Child("hostPort"), v.HostPort, utilvalidation.IsValidPortNum(int(v.HostPort)))
		}
		c.optional(at.Child("name"), v.Name, utilvalidation.IsValidPortName)
	case *corev1.EnvVar:
		c.required(at.Child("name"), v.Name, utilvalidation.IsRelaxedEnvVarName)
		if v.ValueFrom != nil && (v.Value != "" || *v.ValueFrom == corev1.EnvVarSource{}) {
			c.errs = append(c.errs, field.Invalid(at.Child("valueFrom"), "", "must specify exactly one source, and no value"))
		}
	case *corev1.SecretKeySelector:
		c.required(at.Child("key"), v.Key, utilvalidation.IsConfigMapKey)
	case *corev1.ConfigMapKeySelector:
		c.required(at.Child("key"), v.Key, utilvalidation.IsConfigMapKey)
	case *corev1.ResourceRequirements:
		c.resources(v, at)
	case *corev1.LifecycleHandler:
		if v.Exec == nil && v.HTTPGet == nil && v.TCPSocket == nil && v.Sleep == nil {
			c.errs = append(c.errs, field.Required(at, "must specify a handler type"))
		}
	case *corev1.Probe:
		if v.Exec == nil && v.HTTPGet == nil && v.TCPSocket == nil && v.GRPC == nil {
			c.errs = append(c.errs, field.Required(at, "must specify a handler type"))
		}
	case *corev1.HTTPGetAction:
		c.port(at.Child("port"), v.Port)
	case *corev1.TCPSocketAction:
		c.port(at.Child("port"), v.Port)
	case *corev1.ExecAction:
		if len(v.Command) == 0 {
			c.errs = append(c.errs, field.Required(at.Child("command"), ""))
		}
	case *corev1.VolumeMount:
		c.required(at.Child("mountPath"), v.MountPath, nil)
	case *corev1.ConfigMapEnvSource:
		c.required(at.Child("name"), v.Name, nil)
	case *corev1.SecretEnvSource:
		c.required(at.Child("name"), v.Name, nil)
	case *corev1.SecretVolumeSource:
		c.required(at.Child("secretName"), v.SecretName, nil)
	case *corev1.ConfigMapVolumeSource:
		c.required(at.Child("name"), v.Name, nil)
	case *corev1.PersistentVolumeClaimVolumeSource:
		c.required(at.Child("claimName"), v.ClaimName, nil)
	case *corev1.HostPathVolumeSource:
		c.required(at.Child("path"), v.Path, nil)
	}
}

// podSpec checks the names in a pod: they are unique, and mounts name a volume.
func (c *checks) podSpec(s *corev1.PodSpec, at *field.Path) {
	if len(s.Containers) == 0 {
		c.errs = append(c.errs, field.Required(at.Child("containers"), ""))
	}
	c.errs = append(c.errs, metav1validation.ValidateLabels(s.NodeSelector, at.Child("nodeSelector"))...)
	c.optional(at.Child("serviceAccountName"), s.ServiceAccountName, utilvalidation.IsDNS1123Subdomain)
	c.optional(at.Child("priorityClassName"), s.PriorityClassName, utilvalidation.IsDNS1123Subdomain)
	c.optional(at.Child("hostname"), s.Hostname, utilvalidation.IsDNS1123Label)
	volumes := map[string]bool{}
	for i, v := range s.Volumes {
		c.unique(volumes, at.Child("volumes").Index(i).Child("name"), v.Name)
	}
	names := map[string]bool{}
	for list, containers := range map[string][]corev1.Container{"containers": s.Containers, "initContainers": s.InitContainers} {
		for i := range containers {
			at := at.Child(list).Index(i)
			if list == "containers" {
				c.unique(names, at.Child("name"), containers[i].Name)
			}
			c.mounts(volumes, containers[i].VolumeMounts, at)
		}
	}
	for i, container := range s.InitContainers {
		c.unique(names, at.Child("initContainers").Index(i).Child("name"), container.Name)
	}
}

// mounts checks that mounts have volumes and different paths.
func (c *checks) mounts(volumes map[string]bool, mounts []corev1.VolumeMount, at *field.Path) {
	paths := map[string]bool{}
	for i, m := range mounts {
		at := at.Child("volumeMounts").Index(i)
		if !volumes[m.Name] {
			c.errs = append(c.errs, field.NotFound(at.Child("name"), m.Name))
		}
		if paths[m.MountPath] {
			c.errs = append(c.errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths[m.MountPath] = true
	}
}

// unique checks a name, which must not be in names, and adds it.
func (c *checks) unique(names map[string]bool, at *field.Path, name string) {
	c.required(at, name, utilvalidation.IsDNS1123Label)
	if name != "" && names[name] {
		c.errs = append(c.errs, field.Duplicate(at, name))
	}
	names[name] = true
}

func (c *checks) container(v *corev1.Container, at *field.Path) {
	if strings.TrimSpace(v.Image) == "" {
		c.errs = append(c.errs, field.Required(at.Child("image"), ""))
	}
	ports := map[string]bool{}
	for i, p := range v.Ports {
		if p.Name != "" && ports[p.Name] {
			c.errs = append(c.errs, field.Duplicate(at.Child("ports").Index(i).Child("name"), p.Name))
		}
		ports[p.Name] = true
	}
}

// resources checks that quantities are not negative, and requests within their limits.
func (c *checks) resources(r *corev1.ResourceRequirements, at *field.Path) {
	for list, quantities := range map[string]corev1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
		for name, q := range quantities {
			if q.Sign() < 0 {
				c.errs = append(c.errs, field.Invalid(at.Child(list).Key(string(name)), q.String(), "must be greater than or equal to 0"))
			}
		}
	}
	for name, q := range r.Requests {
		if limit, ok := r.Limits[name]; ok && q.Cmp(limit) > 0 {
			c.errs = append(c.errs, field.Invalid(at.Child("requests"), q.String(), "must be less than or equal to "+string(name)+" limit"))
		}
	}
}
