// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// nobody is the user of the container. No image has it in /etc/passwd.
const nobody = 65532

// deployment runs the processes as an unprivileged user, on a read-only file system, with the
// node's default seccomp profile.
func (c *Config) deployment() *appsv1.Deployment {
	strategy, minReady := c.strategy()
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: c.meta(""),
		Spec: appsv1.DeploymentSpec{
			Replicas: c.count(), Strategy: strategy, MinReadySeconds: minReady,
			Selector: &metav1.LabelSelector{MatchLabels: c.labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: c.labels(), Annotations: map[string]string{"kubectl.kubernetes.io/default-container": "wasmctl"}},
				Spec: corev1.PodSpec{
					ServiceAccountName: c.Name,
					Containers:         []corev1.Container{c.container()},
					Volumes:            c.volumes(),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)), FSGroup: new(int64(nobody)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					TerminationGracePeriodSeconds: c.grace(),
				},
			},
		},
	}
}

func (c *Config) container() corev1.Container {
	return corev1.Container{
		Name: "wasmctl", Image: c.Image, Args: c.args(),
		Env: []corev1.EnvVar{
			// Go's runtime frees memory before the limit is reached.
			{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
			// The rest of the file system is read-only. This directory has the socket, the key of
			// the cache, and code during its check.
			{Name: "XDG_RUNTIME_DIR", Value: runDir},
			{Name: "XDG_CONFIG_HOME", Value: runDir},
			{Name: "TMPDIR", Value: runDir},
		},
		Ports: c.ports(),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
		VolumeMounts:   c.mounts(),
		LivenessProbe:  probe("/livez", 10),
		ReadinessProbe: probe("/readyz", 5),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func (c *Config) ports() []corev1.ContainerPort {
	ports := []corev1.ContainerPort{
		{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
		{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
	}
	if c.Webhooks {
		ports = append(ports, corev1.ContainerPort{Name: "webhook", ContainerPort: webhookPort, Protocol: corev1.ProtocolTCP})
	}
	return ports
}

func probe(path string, every int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: every, TimeoutSeconds: 5, FailureThreshold: 3,
	}
}

// Names of volumes.
const (
	volumeControllers = "controllers"
	volumeModules     = "modules"
	volumeCache       = "cache"
	volumeRun         = "run"
)

func (c *Config) mounts() []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: volumeCache, MountPath: cacheDir}, {Name: volumeRun, MountPath: runDir}}
	if c.serves() {
		return mounts
	}
	mounts = slices.Insert(mounts, 0, corev1.VolumeMount{Name: volumeControllers, MountPath: ConfigDir, ReadOnly: true})
	if c.Source != FromImage {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeModules, MountPath: ModuleDir, ReadOnly: true})
	}
	return mounts
}

func (c *Config) volumes() []corev1.Volume {
	fromConfigMap := func(volume, name string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}}
	}
	scratch := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	volumes := []corev1.Volume{scratch(volumeCache), scratch(volumeRun)}
	if c.serves() {
		return volumes
	}
	volumes = slices.Insert(volumes, 0, fromConfigMap(volumeControllers, c.Name+"-controllers"))
	switch c.Source {
	case FromConfigMap:
		all := &corev1.ProjectedVolumeSource{}
		for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
			all.Sources = append(all.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: c.moduleName(name)},
			}})
		}
		volumes = append(volumes, corev1.Volume{Name: volumeModules, VolumeSource: corev1.VolumeSource{Projected: all}})
	case FromClaim:
		volumes = append(volumes, corev1.Volume{Name: volumeModules, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Claim, ReadOnly: true},
		}})
	}
	return volumes
}

// service names the target of metrics scrapes, and of the API server's calls of webhooks.
func (c *Config) service() any {
	ports := []corev1.ServicePort{{Name: "metrics", Port: metricsPort, TargetPort: intstr.FromString("metrics"), Protocol: corev1.ProtocolTCP}}
	if c.Webhooks {
		ports = append(ports, corev1.ServicePort{Name: "webhook", Port: 443, TargetPort: intstr.FromString("webhook"), Protocol: corev1.ProtocolTCP})
	}
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: c.meta(""),
		Spec: corev1.ServiceSpec{Selector: c.labels(), Ports: ports},
	}
}

// egressPorts are the usual ports of API servers, registries, and collectors of traces. A policy is often applied to the
// address behind a Service, so the port of the Service alone is not enough.
var egressPorts = []int{443, 6443, 8443, 16443, 5000, 4317, 4318}

// dnsPorts are the ports of DNS; the second one is that of OpenShift's pods.
var dnsPorts = []int{53, 5353}

// networkPolicy permits incoming connections only to the ports of the container, and outgoing ones only to the ports of
// DNS, API servers, registries and collectors. It names no addresses, because these differ between clusters.
func (c *Config) networkPolicy() any {
	port := func(protocol corev1.Protocol, at intstr.IntOrString) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &at}
	}
	var in, out []networkingv1.NetworkPolicyPort
	for _, p := range c.ports() {
		in = append(in, port(p.Protocol, intstr.FromString(p.Name)))
	}
	for _, n := range dnsPorts {
		out = append(out, port(corev1.ProtocolUDP, intstr.FromInt(n)), port(corev1.ProtocolTCP, intstr.FromInt(n)))
	}
	for _, n := range egressPorts {
		out = append(out, port(corev1.ProtocolTCP, intstr.FromInt(n)))
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}, ObjectMeta: c.meta(""),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: c.labels()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: in}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{Ports: out}},
		},
	}
}

// Kinds of the Prometheus operator.
const (
	PodMonitor     = "PodMonitor"
	ServiceMonitor = "ServiceMonitor"
)

// monitor returns an object of the Prometheus operator, without its Go types and their dependencies.
func (c *Config) monitor(kind string) any {
	endpoints := map[string]string{PodMonitor: "podMetricsEndpoints", ServiceMonitor: "endpoints"}[kind]
	labels := func() map[string]any {
		m := map[string]any{}
		for k, v := range c.labels() {
			m[k] = v
		}
		return m
	}
	return map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": kind,
		"metadata": map[string]any{"name": c.Name, "namespace": c.Namespace, "labels": labels()},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels()},
			endpoints:  []any{map[string]any{"port": "metrics"}},
		},
	}
}
