// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check appends the errors of one value, without those in the values below it.
func (c *checks) check(value any, at *field.Path) {
	switch v := value.(type) {
	case *corev1.ConfigMap:
		c.data(v.Data, v.BinaryData)
	case *corev1.Namespace:
		for _, f := range v.Spec.Finalizers {
			c.errs = append(c.errs, metav1validation.ValidateLabelName(string(f), field.NewPath("spec", "finalizers"))...)
			c.errs = append(c.errs, standardFinalizer(string(f), field.NewPath("spec", "finalizers"))...)
		}
	case *corev1.Secret:
		c.secret(v)
	case *metav1.LabelSelector:
		c.errs = append(c.errs, metav1validation.ValidateLabelSelector(v, metav1validation.LabelSelectorValidationOptions{}, at)...)
	case *corev1.PodTemplateSpec:
		c.errs = append(c.errs, metav1validation.ValidateLabels(v.Labels, at.Child("labels"))...)
		c.errs = append(c.errs, validation.ValidateAnnotations(v.Annotations, at.Child("annotations"))...)
	case *appsv1.DeploymentSpec:
		c.workload(v.Selector, &v.Template, at)
	case *appsv1.ReplicaSetSpec:
		c.workload(v.Selector, &v.Template, at)
	case *appsv1.StatefulSetSpec:
		c.workload(v.Selector, &v.Template, at)
	case *appsv1.DaemonSetSpec:
		c.workload(v.Selector, &v.Template, at)
	case *batchv1.JobSpec:
		if p := v.Template.Spec.RestartPolicy; p == "" || p == corev1.RestartPolicyAlways {
			c.errs = append(c.errs, field.Required(at.Child("template", "spec", "restartPolicy"), `valid values: "OnFailure", "Never"`))
		}
	case *batchv1.CronJobSpec:
		c.required(at.Child("schedule"), v.Schedule, isSchedule)
	case *rbacv1.RoleRef:
		c.required(at.Child("name"), v.Name, nil)
		if v.APIGroup != "" && v.APIGroup != rbacv1.GroupName {
			c.errs = append(c.errs, field.NotSupported(at.Child("apiGroup"), v.APIGroup, []string{rbacv1.GroupName}))
		}
		if v.Kind != "Role" && v.Kind != "ClusterRole" {
			c.errs = append(c.errs, field.NotSupported(at.Child("kind"), v.Kind, []string{"Role", "ClusterRole"}))
		}
	case *rbacv1.Subject:
		c.subject(v, at)
	case *rbacv1.PolicyRule:
		c.rule(v, at)
	default:
		c.checkNetwork(value, at)
		c.checkPod(value, at)
	}
}

// messages appends an error for each message.
func (c *checks) messages(at *field.Path, value any, messages []string) {
	for _, m := range messages {
		c.errs = append(c.errs, field.Invalid(at, value, m))
	}
}

// optional checks a value that may be empty.
func (c *checks) optional(at *field.Path, value string, valid func(string) []string) {
	if value != "" {
		c.messages(at, value, valid(value))
	}
}

// required checks a value that must not be empty. valid may be nil.
func (c *checks) required(at *field.Path, value string, valid func(string) []string) {
	if value == "" {
		c.errs = append(c.errs, field.Required(at, ""))
	} else if valid != nil {
		c.messages(at, value, valid(value))
	}
}

// port checks the number or the name of a port.
func (c *checks) port(at *field.Path, p intstr.IntOrString) {
	if p.Type == intstr.Int {
		c.messages(at, p.IntVal, utilvalidation.IsValidPortNum(int(p.IntVal)))
	} else {
		c.messages(at, p.StrVal, utilvalidation.IsValidPortName(p.StrVal))
	}
}

// data checks the keys and the size of a ConfigMap or a Secret.
func (c *checks) data(text map[string]string, binary map[string][]byte) {
	size := 0
	for key, value := range text {
		size += len(value)
		c.messages(field.NewPath("data").Key(key), key, utilvalidation.IsConfigMapKey(key))
	}
	for key, value := range binary {
		size += len(value)
		at := field.NewPath("binaryData").Key(key)
		if _, both := text[key]; both {
			at = field.NewPath("data").Key(key)
			c.errs = append(c.errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		c.messages(at, key, utilvalidation.IsConfigMapKey(key))
	}
	if size > corev1.MaxSecretSize {
		c.errs = append(c.errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
}

// secretKeys are the keys that a Secret of a type must have.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
}

func (c *checks) secret(s *corev1.Secret) {
	data := map[string]string{}
	for key, value := range s.Data {
		data[key] = string(value)
	}
	maps.Copy(data, s.StringData)
	c.data(data, nil)
	for _, key := range secretKeys[s.Type] {
		if _, ok := data[key]; !ok {
			c.errs = append(c.errs, field.Required(field.NewPath("data").Key(key), ""))
		}
	}
}

// workload checks the selector and the template of pods that are always restarted.
func (c *checks) workload(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, at *field.Path) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case selector == nil:
		c.errs = append(c.errs, field.Required(at.Child("selector"), ""))
	case err != nil || s.Empty():
		c.errs = append(c.errs, field.Invalid(at.Child("selector"), selector, "invalid label selector"))
	}
	if err == nil && (selector == nil || !s.Matches(labels.Set(template.Labels))) {
		c.errs = append(c.errs, field.Invalid(at.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	if p := template.Spec.RestartPolicy; p == corev1.RestartPolicyNever || p == corev1.RestartPolicyOnFailure {
		c.errs = append(c.errs, field.NotSupported(at.Child("template", "spec", "restartPolicy"), p, []string{"Always"}))
	}
}

func isSchedule(text string) []string {
	if strings.Contains(text, "TZ") {
		return []string{"cannot use TZ or CRON_TZ in schedule, use timeZone field instead"}
	}
	if _, err := cron.ParseStandard(text); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func (c *checks) subject(s *rbacv1.Subject, at *field.Path) {
	c.required(at.Child("name"), s.Name, nil)
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		c.optional(at.Child("name"), s.Name, utilvalidation.IsDNS1123Subdomain)
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		c.errs = append(c.errs, field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		return
	}
	if s.APIGroup != "" && s.APIGroup != group {
		c.errs = append(c.errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
	}
}

func (c *checks) rule(r *rbacv1.PolicyRule, at *field.Path) {
	if len(r.Verbs) == 0 {
		c.errs = append(c.errs, field.Required(at.Child("verbs"), ""))
	}
	switch {
	case len(r.NonResourceURLs) > 0:
		if slices.Concat(r.APIGroups, r.Resources, r.ResourceNames) != nil {
			c.errs = append(c.errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		}
	case len(r.APIGroups) == 0:
		c.errs = append(c.errs, field.Required(at.Child("apiGroups"), ""))
	case len(r.Resources) == 0:
		c.errs = append(c.errs, field.Required(at.Child("resources"), ""))
	}
}
