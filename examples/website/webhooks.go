// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// setDefaults sets the fields that are absent, and nothing else: the API server may call it again.
func setDefaults(ctx *wasmctl.Context, a wasmctl.Admission) wasmctl.Verdict {
	site, changed := a.Object, false
	set := func(value any, field string) error {
		if site.Exists("spec", field) {
			return nil
		}
		changed = true
		return site.Set(value, "spec", field)
	}
	port := 80
	if site.Bool("spec", "tls") {
		port = 443
	}
	theme, err := ctx.Config("theme")
	if err == nil {
		err = set(theme, "theme")
	}
	if err == nil {
		err = set(port, "port")
	}
	switch {
	case err != nil:
		return wasmctl.Verdict{Err: err}
	case !changed:
		return wasmctl.Allow()
	}
	return wasmctl.Defaulted(site)
}

// validate checks rules that need the old object or other objects. The schema of the CRD checks the
// others.
func validate(ctx *wasmctl.Context, a wasmctl.Admission) wasmctl.Verdict {
	var causes []wasmctl.Cause
	host := a.Object.String("spec", "host")
	if a.Operation == wasmctl.OperationUpdate && a.Old.String("spec", "host") != host {
		causes = append(causes, wasmctl.Cause{Type: "FieldValueForbidden", Field: "spec.host", Message: "cannot be changed"})
	}
	if a.Object.Bool("spec", "tls") && a.Object.Int("spec", "port") == 80 {
		causes = append(causes, wasmctl.Cause{Type: "FieldValueInvalid", Field: "spec.port", Message: "80 is not a port for TLS"})
	}
	for other, err := range ctx.Cache().All(wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: a.Namespace}, wasmctl.CacheListOptions{}) {
		if err != nil {
			return wasmctl.Verdict{Err: err} // the failure policy decides
		}
		if other.Name() != a.Name && other.String("spec", "host") == host {
			causes = append(causes, wasmctl.Cause{Type: "FieldValueDuplicate", Field: "spec.host", Message: "belongs to " + other.Name()})
		}
	}
	v := wasmctl.Invalid(causes...)
	if a.Object.String("spec", "theme") == "classic" {
		v.Warnings = append(v.Warnings, "spec.theme: classic is deprecated; use plain")
	}
	return v
}

// tlsKey is the annotation for spec.tls in v1, which has no such field.
const tlsKey = group + "/tls"

// convert converts between v1, which has spec.address, and v2, which has spec.host, spec.port and
// spec.tls.
func convert(_ *wasmctl.Context, site wasmctl.Object, to string) (any, error) {
	var err error
	set := func(value any, path ...string) {
		if err == nil {
			err = site.Set(value, path...)
		}
	}
	set(to, "apiVersion")
	if to == apiVersion {
		host, port, hasPort := strings.Cut(site.String("spec", "address"), ":")
		set(host, "spec", "host")
		if n, bad := strconv.Atoi(port); bad == nil && hasPort {
			set(n, "spec", "port")
		}
		if tls := site.Annotation(tlsKey); tls != "" {
			set(tls == "true", "spec", "tls")
		}
		site.Remove("metadata", "annotations", tlsKey)
		site.Remove("spec", "address")
		return site, err
	}
	set(address(site), "spec", "address")
	if site.Exists("spec", "tls") {
		set(strconv.FormatBool(site.Bool("spec", "tls")), "metadata", "annotations", tlsKey)
	}
	for _, field := range []string{"host", "port", "tls"} {
		site.Remove("spec", field)
	}
	return site, err
}

// address returns "host:port" of a v2 object.
func address(site wasmctl.Object) string {
	s := site.String("spec", "host")
	if port := site.Int("spec", "port"); port != 0 {
		s += ":" + strconv.FormatInt(port, 10)
	}
	return s
}
