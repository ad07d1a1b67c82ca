// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// DefaultShards is the default number of parts of the objects: each of 10 replicas gets 6 or 7.
const DefaultShards = 64

const (
	// handOver is the time that a stopping replica waits for others to take its objects.
	handOver = 15 * time.Second
	// answering is the time in which a stopping replica answers the last requests of the API server.
	answering = 40 * time.Second
	// spare is added to the time that a pod has to end.
	spare = 15 * time.Second
	// leaving is the time that a process of wasmctl serve needs in addition if its installation is deleted.
	leaving = 30 * time.Second
	// settle is the time that a new pod must be ready before the next one is replaced, so that it
	// can take its part of the objects.
	settle = 10 * time.Second
	// leasesFirst precedes Kubernetes' flow schemas for service accounts, and follows those for its
	// own components.
	leasesFirst = 190
	// busy is the average CPU usage of a replica above which replicas are added.
	busy = "700m"
)

// leaseRights returns the rights to Leases that replicas need.
func (c *Config) leaseRights() []abi.Capability {
	switch {
	case c.Shards > 0:
		return grant.ShardRules(c.Namespace)
	case c.Replicas > 1:
		return grant.LeaseRules(c.Namespace, c.Name)
	}
	return nil
}

// replicaArgs returns the arguments for the work of several replicas.
func (c *Config) replicaArgs() []string {
	switch {
	case c.Shards > 0:
		args := []string{"--shards", fmt.Sprint(c.Shards), "--leader-elect-resource-name", c.Name}
		if c.ShareObjects {
			args = append(args, "--share", "objects")
		}
		return args
	case c.Replicas > 1:
		return []string{"--leader-elect", "--leader-elect-resource-name", c.Name}
	}
	return nil
}

// replicated returns the objects that only several replicas need.
func (c *Config) replicated() (list []any) {
	if c.Replicas > 1 || c.Shards > 0 {
		list = append(list, c.disruptionBudget())
	}
	if c.Shards > 0 {
		list = append(list, c.flowSchema())
	}
	if c.MaxReplicas > 0 {
		list = append(list, c.autoscaler())
	}
	return list
}

// count returns the number of replicas in the Deployment. With an autoscaler, it is nil: otherwise
// each apply of the Deployment would undo the autoscaler's changes.
func (c *Config) count() *int32 {
	if c.MaxReplicas > 0 {
		return nil
	}
	return new(c.Replicas)
}

// grace returns the time that a pod has to end: to hand over its objects, finish running reconciles, and
// take its finalizers off.
func (c *Config) grace() *int64 {
	all := cmp.Or(c.Drain, runner.DefaultDrainTimeout) + spare
	if c.Shards > 0 || c.serves() { // a value of the chart has the same default for all
		all += handOver
	}
	if c.Webhooks || c.serves() {
		all += answering
	}
	if c.serves() {
		all += leaving
	}
	return new(int64(all.Round(time.Second).Seconds()))
}

// strategy replaces pods that share the objects one by one, each after a new pod has taken its
// part. No object moves to a pod that is replaced next, and there are never fewer pods.
func (c *Config) strategy() (s appsv1.DeploymentStrategy, minReady int32) {
	if c.Shards == 0 {
		return s, 0
	}
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
	}}, int32(settle.Seconds())
}

// disruptionBudget protects one of several replicas. If all of them reconcile, it protects all but
// one. A single replica can be evicted.
func (c *Config) disruptionBudget() any {
	spec := policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: c.labels()}}
	if c.Shards > 0 {
		spec.MaxUnavailable = new(intstr.FromInt32(1))
	} else {
		spec.MinAvailable = new(intstr.FromInt32(1))
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: c.meta(""), Spec: spec,
	}
}

// flowSchema gives requests for the Leases priority over other requests of the service account,
// because a late renewal loses the lease. Kubernetes does that only for Leases in kube-system.
func (c *Config) flowSchema() any {
	m := c.meta("")
	m.Name, m.Namespace = flowSchemaName(c.Namespace, c.Name), ""
	leases := grant.ShardRules(c.Namespace)[0]
	return &flowcontrolv1.FlowSchema{
		TypeMeta: metav1.TypeMeta{APIVersion: "flowcontrol.apiserver.k8s.io/v1", Kind: "FlowSchema"}, ObjectMeta: m,
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "leader-election"},
			MatchingPrecedence:         leasesFirst,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind:           flowcontrolv1.SubjectKindServiceAccount,
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: c.Namespace, Name: c.Name},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					APIGroups: []string{leases.Group}, Resources: []string{leases.Resource}, Verbs: slices.Clone(leases.Verbs), Namespaces: []string{c.Namespace},
				}},
			}},
		},
	}
}

func flowSchemaName(namespace, name string) string { return namespace + "." + name + ".leases" }

// autoscaler keeps the CPU usage of a replica below busy. That is not a percentage of the request,
// which is much smaller.
func (c *Config) autoscaler() any {
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}, ObjectMeta: c.meta(""),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: c.Name},
			MinReplicas:    new(c.Replicas), MaxReplicas: c.MaxReplicas,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(busy)),
				}},
			}},
		},
	}
}

// validateReplicas returns an error for settings that exclude each other.
func (c *Config) validateReplicas() error {
	switch {
	case c.MaxReplicas == 0:
		return nil
	case c.Shards == 0:
		return fmt.Errorf("--max-replicas %d needs --shards: without it, only one replica reconciles", c.MaxReplicas)
	case c.MaxReplicas < c.Replicas:
		return fmt.Errorf("--max-replicas %d: want at least --replicas, %d", c.MaxReplicas, c.Replicas)
	case int(c.MaxReplicas) > c.Shards:
		return fmt.Errorf("--max-replicas %d: at most --shards, %d, have something to do", c.MaxReplicas, c.Shards)
	}
	return nil
}
