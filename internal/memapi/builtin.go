// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// validateBuiltIn validates the metadata of a built-in kind, and its values as far as
// checks has rules. An update may leave invalid values as they are.
func (r *Request) validateBuiltIn(was, o *unstructured.Unstructured) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(o, r.Kind.Namespaced, r.Kind.validateName(), meta)
	if was != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(o, was, meta)...)
	}
	for i, f := range o.GetFinalizers() {
		errs = append(errs, standardFinalizer(f, meta.Child("finalizers").Index(i))...)
	}
	if r.Subresource != "" {
		return errs
	}
	found := r.Kind.checkValues(o.Object)
	if was != nil && len(found) > 0 {
		old := r.Kind.checkValues(r.versioned(was.Object))
		found = slices.DeleteFunc(found, func(e *field.Error) bool {
			return slices.ContainsFunc(old, func(o *field.Error) bool { return o.Error() == e.Error() })
		})
	}
	return append(errs, found...)
}

// standardFinalizer returns an error for the name of a finalizer without a domain, except
// for those of Kubernetes.
func standardFinalizer(name string, at *field.Path) field.ErrorList {
	if strings.Contains(name, "/") || name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || name == string(corev1.FinalizerKubernetes) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")}
}

// validateName returns the validation of names of a built-in kind.
func (k *Kind) validateName() validation.ValidateNameFunc {
	switch {
	case k.Kind == "Namespace":
		return validation.NameIsDNSLabel
	case k.Group == rbacv1.GroupName:
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case k.Kind == "Service":
		return validation.NameIsDNSLabel
	case k.Kind == "CronJob":
		return func(name string, prefix bool) []string {
			if len(name) > utilvalidation.DNS1035LabelMaxLength-11 {
				return []string{"must be no more than 52 characters"} // jobs append a time to it
			}
			return validation.NameIsDNSSubdomain(name, prefix)
		}
	}
	return validation.NameIsDNSSubdomain
}

// checkValues returns the errors in the values of an object.
func (k *Kind) checkValues(object map[string]any) field.ErrorList {
	typed, err := scheme.Scheme.New(k.GroupVersionKind)
	if err != nil || convert(object, typed) != nil {
		return nil // pruned has reported it
	}
	var c checks
	c.walk(reflect.ValueOf(typed).Elem(), nil)
	return c.errs
}

// checks collects the errors in the values of one object.
type checks struct{ errs field.ErrorList }

// walk checks a value and everything in it, except for the metadata and the status of the
// object.
func (c *checks) walk(v reflect.Value, at *field.Path) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.walk(v.Elem(), at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i), at.Index(i))
		}
	case reflect.String:
		if known := enums[v.Type()]; v.String() != "" && known != nil && !slices.Contains(known, v.String()) {
			c.errs = append(c.errs, field.NotSupported(at, v.String(), known))
		}
	case reflect.Int32, reflect.Int64:
		if v.Int() < 0 && at != nil && slices.Contains(counts, name(at)) {
			c.errs = append(c.errs, field.Invalid(at, v.Int(), "must be greater than or equal to 0"))
		}
	case reflect.Struct:
		c.check(v.Addr().Interface(), at)
		if !strings.HasPrefix(v.Type().PkgPath(), "k8s.io/api/") {
			return // of apimachinery: a time, a quantity, a selector
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case at == nil && (key == "metadata" || key == "status"):
			case key == "":
				c.walk(v.Field(i), at)
			default:
				c.walk(v.Field(i), child(at, key))
			}
		}
	default:
	}
}

func child(at *field.Path, key string) *field.Path {
	if at == nil {
		return field.NewPath(key)
	}
	return at.Child(key)
}

// name returns the last part of a path.
func name(at *field.Path) string { return at.String()[strings.LastIndexByte(at.String(), '.')+1:] }

// counts are the fields whose value must not be negative.
var counts = []string{
	"replicas", "minReadySeconds", "revisionHistoryLimit", "parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
	"ttlSecondsAfterFinished", "successfulJobsHistoryLimit", "failedJobsHistoryLimit", "startingDeadlineSeconds", "initialDelaySeconds",
	"periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold", "runAsUser", "runAsGroup", "fsGroup",
}

// enums are the values of types of strings, except those whose errors the API server
// reports at the parent.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[corev1.Protocol]():                 {"TCP", "UDP", "SCTP"},
	reflect.TypeFor[corev1.ServiceType]():              {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"},
	reflect.TypeFor[corev1.ServiceAffinity]():          {"ClientIP", "None"},
	reflect.TypeFor[corev1.RestartPolicy]():            {"Always", "OnFailure", "Never"},
	reflect.TypeFor[corev1.DNSPolicy]():                {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
	reflect.TypeFor[corev1.PullPolicy]():               {"Always", "IfNotPresent", "Never"},
	reflect.TypeFor[corev1.TerminationMessagePolicy](): {"File", "FallbackToLogsOnError"},
	reflect.TypeFor[corev1.TolerationOperator]():       {"Equal", "Exists", "Lt", "Gt"},
	reflect.TypeFor[corev1.TaintEffect]():              {"NoSchedule", "PreferNoSchedule", "NoExecute"},
	reflect.TypeFor[appsv1.PodManagementPolicyType]():  {"OrderedReady", "Parallel"},
	reflect.TypeFor[batchv1.CompletionMode]():          {"NonIndexed", "Indexed"},
	reflect.TypeFor[batchv1.ConcurrencyPolicy]():       {"Allow", "Forbid", "Replace"},
	reflect.TypeFor[networkingv1.PathType]():           {"Exact", "Prefix", "ImplementationSpecific"},
}
