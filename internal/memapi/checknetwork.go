// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"net"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkNetwork is check for the values of Services and Ingresses.
func (c *checks) checkNetwork(value any, at *field.Path) {
	switch v := value.(type) {
	case *corev1.ServiceSpec:
		c.service(v, at)
	case *corev1.ServicePort:
		c.messages(at.Child("port"), v.Port, utilvalidation.IsValidPortNum(int(v.Port)))
		target := v.TargetPort
		if target == (intstr.IntOrString{}) {
			target = intstr.FromInt32(v.Port)
		}
		c.port(at.Child("targetPort"), target)
		c.optional(at.Child("name"), v.Name, utilvalidation.IsDNS1123Label)
	case *networkingv1.IngressSpec:
		if len(v.Rules) == 0 && v.DefaultBackend == nil {
			c.errs = append(c.errs, field.Invalid(at, nil, "either `defaultBackend` or `rules` must be specified"))
		}
		if v.IngressClassName != nil {
			c.optional(at.Child("ingressClassName"), *v.IngressClassName, utilvalidation.IsDNS1123Subdomain)
		}
	case *networkingv1.IngressRule:
		c.optional(at.Child("host"), v.Host, isHost)
		if v.HTTP != nil && len(v.HTTP.Paths) == 0 {
			c.errs = append(c.errs, field.Required(at.Child("http", "paths"), ""))
		}
	case *networkingv1.IngressTLS:
		for i, host := range v.Hosts {
			c.messages(at.Child("hosts").Index(i), host, isName(host))
		}
		c.optional(at.Child("secretName"), v.SecretName, utilvalidation.IsDNS1123Subdomain)
	case *networkingv1.HTTPIngressPath:
		c.path(v, at)
	case *networkingv1.IngressBackend:
		c.backend(v, at)
	}
}

func (c *checks) service(s *corev1.ServiceSpec, at *field.Path) {
	c.errs = append(c.errs, metav1validation.ValidateLabels(s.Selector, at.Child("selector"))...)
	if s.Type == corev1.ServiceTypeExternalName {
		c.required(at.Child("externalName"), s.ExternalName, utilvalidation.IsDNS1123Subdomain)
	} else if len(s.Ports) == 0 && s.ClusterIP != corev1.ClusterIPNone {
		c.errs = append(c.errs, field.Required(at.Child("ports"), ""))
	}
	names, numbers := map[string]bool{}, map[string]bool{}
	for i, p := range s.Ports {
		at := at.Child("ports").Index(i)
		number := fmt.Sprint(p.Port, "/", strings.TrimSuffix(string(p.Protocol), "TCP"))
		switch {
		case p.Name == "" && len(s.Ports) > 1:
			c.errs = append(c.errs, field.Required(at.Child("name"), ""))
		case p.Name != "" && names[p.Name]:
			c.errs = append(c.errs, field.Duplicate(at.Child("name"), p.Name))
		case numbers[number]:
			c.errs = append(c.errs, field.Duplicate(at, number))
		case p.NodePort != 0 && (s.Type == "" || s.Type == corev1.ServiceTypeClusterIP):
			c.errs = append(c.errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		names[p.Name], numbers[number] = true, true
	}
}

// isHost returns what is wrong with the host of an Ingress.
func isHost(host string) []string {
	if net.ParseIP(host) != nil {
		return []string{"must be a DNS name, not an IP address"}
	}
	return isName(host)
}

// isName returns what is wrong with a DNS name that may begin with a wildcard.
func isName(host string) []string {
	if strings.Contains(host, "*") {
		return utilvalidation.IsWildcardDNS1123Subdomain(host)
	}
	return utilvalidation.IsDNS1123Subdomain(host)
}

func (c *checks) path(p *networkingv1.HTTPIngressPath, at *field.Path) {
	switch {
	case p.PathType == nil:
		c.errs = append(c.errs, field.Required(at.Child("pathType"), ""))
	case *p.PathType == networkingv1.PathTypeImplementationSpecific && p.Path == "":
	case !strings.HasPrefix(p.Path, "/"):
		c.errs = append(c.errs, field.Invalid(at.Child("path"), p.Path, "must be an absolute path"))
	case *p.PathType != networkingv1.PathTypeImplementationSpecific && path.Join(p.Path, "x") != strings.TrimSuffix(p.Path, "/")+"/x":
		c.errs = append(c.errs, field.Invalid(at.Child("path"), p.Path, "must be a clean path"))
	}
}

func (c *checks) backend(b *networkingv1.IngressBackend, at *field.Path) {
	s := b.Service
	if (s == nil) == (b.Resource == nil) {
		c.errs = append(c.errs, field.Invalid(at, "", "either a service or a resource is required"))
	}
	if s == nil {
		return
	}
	c.required(at.Child("service", "name"), s.Name, utilvalidation.IsDNS1035Label)
	switch {
	case (s.Port.Name == "") == (s.Port.Number == 0):
		c.errs = append(c.errs, field.Required(at, "port name or number is required, and not both"))
	case s.Port.Name == "":
		c.messages(at.Child("service", "port", "number"), s.Port.Number, utilvalidation.IsValidPortNum(int(s.Port.Number)))
	}
}
