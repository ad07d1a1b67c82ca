// SPDX-License-Identifier: Apache-2.0

// Package pods reaches the processes of wasmctl in the pods of a cluster, with the rights of the user. It
// does what kubectl exec does: it runs a command of wasmctl in the pod, which connects to the process's
// socket. The user needs the rights to get and list pods, and to create pods/exec.
package pods

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/internal/failure"
)

// Selector selects the pods of the objects that wasmctl manifests prints.
const Selector = "app.kubernetes.io/name=wasmctl"

const (
	// containerName is the name of wasmctl's container in these objects, and binaryPath the path of wasmctl
	// in its image.
	containerName = "wasmctl"
	binaryPath    = "/wasmctl"

	defaultContainer = "kubectl.kubernetes.io/default-container"
)

// Pod is a pod in which wasmctl runs.
type Pod struct {
	Namespace, Name string

	config            *rest.Config
	container, binary string
}

// String returns the name of the pod for people.
func (p *Pod) String() string { return "pod[" + p.Namespace + "/" + p.Name + "]" }

// Find returns the running pods of wasmctl in a namespace, ordered by name, or the one of this name if it is
// not empty.
func Find(ctx context.Context, config *rest.Config, namespace, name string) ([]Pod, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if name != "" {
		one, err := client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("pod[%s/%s]: %w", namespace, name, err)
		}
		list.Items = []corev1.Pod{*one}
	} else {
		all, err := client.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: Selector})
		if err != nil {
			return nil, err
		}
		list = *all
	}
	found := running(list.Items)
	for i := range found {
		found[i].config = config
	}
	switch {
	case len(found) > 0:
		return found, nil
	case name != "":
		return nil, fmt.Errorf("pod[%s/%s]: is not running", namespace, name)
	}
	return nil, failure.Cluster.Wrap(fmt.Errorf("namespace[%s]: no pod with the label %s is running; name another pod with --pod", namespace, Selector))
}

// running returns the pods whose container of wasmctl runs, ordered by name. It is pure.
func running(list []corev1.Pod) (found []Pod) {
	for i := range list {
		p := &list[i]
		c := containerOf(p)
		runs := slices.ContainsFunc(p.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return st.Name == c.Name && st.State.Running != nil })
		if !runs || p.DeletionTimestamp != nil {
			continue
		}
		binary := binaryPath
		if len(c.Command) > 0 { // an image with another entry point
			binary = c.Command[0]
		}
		found = append(found, Pod{Namespace: p.Namespace, Name: p.Name, container: c.Name, binary: binary})
	}
	slices.SortFunc(found, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// containerOf returns the container of wasmctl in a pod: the one with its name, or that of the annotation
// for kubectl, or the first one.
func containerOf(p *corev1.Pod) *corev1.Container {
	for _, name := range []string{containerName, p.Annotations[defaultContainer]} {
		if i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
			return &p.Spec.Containers[i]
		}
	}
	if len(p.Spec.Containers) == 0 {
		return &corev1.Container{}
	}
	return &p.Spec.Containers[0]
}
