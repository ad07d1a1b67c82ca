// SPDX-License-Identifier: Apache-2.0

// Package check finds out whether a cluster is fit for wasmctl serve. The functions of this file judge, and are pure; Cluster asks the API
// server.
package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// Level is the result of a check.
type Level string

// Levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // wasmctl works, but perhaps not in each case
	Fail Level = "fail" // wasmctl does not work, or cannot be installed
)

// Finding is the result of a check.
type Finding struct {
	Check string
	Level Level
	// Text describes what was found and, unless the level is OK, what to do.
	Text string
}

// oldest is the oldest supported version of Kubernetes.
var oldest = version.MustParseGeneric("1.33")

// serverVersion judges the version of the API server.
func serverVersion(text string) Finding {
	f := Finding{"Kubernetes version", OK, text}
	v, err := version.ParseGeneric(text)
	switch {
	case err != nil:
		f.Level, f.Text = Warn, fmt.Sprintf("%q is not a version; wasmctl needs Kubernetes %v or newer", text, oldest)
	case v.LessThan(oldest):
		f.Level, f.Text = Fail, fmt.Sprintf("%s is too old: upgrade to %v or newer", text, oldest)
	}
	return f
}

// maxSkew is the difference between clocks above which times in status and logs mislead.
const maxSkew = 5 * time.Second

// clock judges the difference between the clocks. The API server sent date, which is in full seconds, between two times of the local clock.
func clock(before, date, after time.Time) Finding {
	f := Finding{"clock", OK, fmt.Sprintf("at most %v from that of the API server", maxSkew)}
	var skew time.Duration
	switch end := date.Add(time.Second); {
	case end.Before(before):
		skew = before.Sub(end)
	case date.After(after):
		skew = after.Sub(date)
	}
	switch {
	case date.IsZero():
		f.Level, f.Text = Warn, "the API server has sent no date"
	case skew.Abs() > maxSkew:
		f.Level, f.Text = Warn, fmt.Sprintf("differs from that of the API server by %v: synchronize the clocks, also of the nodes", skew.Abs().Round(time.Second))
	}
	return f
}

// groups judges whether the API server has the groups with their versions.
func groups(want, have []string) Finding {
	missing := slices.DeleteFunc(slices.Clone(want), func(g string) bool { return slices.Contains(have, g) })
	if len(missing) > 0 {
		return Finding{"API groups", Fail, "the API server does not serve " + strings.Join(missing, ", ") + ": enable them"}
	}
	return Finding{"API groups", OK, fmt.Sprintf("all %d that wasmctl needs", len(want))}
}

// rights judges the rights of the user, who lacks those to some resources. admin means all rights, or the right to grant others more rights.
func rights(missing []string, admin bool) Finding {
	switch {
	case len(missing) > 0:
		return Finding{"rights to install", Fail, "you may not create and patch " + strings.Join(missing, ", ") + ": ask an administrator to install wasmctl"}
	case !admin:
		return Finding{"rights to install", Warn, "you may grant only rights that you have: if the API server refuses the ClusterRole, ask an administrator"}
	}
	return Finding{"rights to install", OK, "you may create all objects"}
}

// applyCRDs is what to do if the CRDs are not those of this binary.
const applyCRDs = "wasmctl crds | kubectl apply --server-side -f -"

// crd judges a CRD of the cluster, which is nil if there is none, by that of this binary.
func crd(name string, have, want map[string]any) Finding {
	f := Finding{"CRD " + name, OK, "as this wasmctl needs it"}
	if have == nil {
		f.Text = "not installed yet"
		return f
	}
	o := &unstructured.Unstructured{Object: have}
	mine, theirs := versionOf(want), versionOf(have)
	switch missing := missingFields("", schemaOf(mine), schemaOf(theirs)); {
	case o.GetDeletionTimestamp() != nil:
		f.Level, f.Text = Fail, "it is being deleted; if that waits, use wasmctl uninstall"
	case theirs == nil || theirs["served"] != true || !established(o):
		f.Level, f.Text = Fail, v1alpha1.Version+" is not served: "+applyCRDs
	case len(missing) > 0:
		f.Level, f.Text = Fail, fmt.Sprintf("it is of another version of wasmctl, and lacks %s: %s", strings.Join(missing[:min(3, len(missing))], ", "), applyCRDs)
	}
	return f
}

// versionOf returns the entry of a CRD for the version of this binary, or nil.
func versionOf(crd map[string]any) map[string]any {
	list, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, item := range list {
		if v, ok := item.(map[string]any); ok && v["name"] == v1alpha1.Version {
			return v
		}
	}
	return nil
}

func schemaOf(version map[string]any) map[string]any {
	schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	return schema
}

// established reports whether the API server has accepted a CRD.
func established(crd *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == "Established" && c["status"] == "True"
	})
}

// missingFields returns the paths of the fields that one schema has and the other lacks. The API server drops such fields silently.
func missingFields(path string, want, have map[string]any) (missing []string) {
	for _, below := range []string{"items", "additionalProperties"} {
		if w, ok := want[below].(map[string]any); ok {
			h, _ := have[below].(map[string]any)
			missing = append(missing, missingFields(path+"[]", w, h)...)
		}
	}
	properties, _ := want["properties"].(map[string]any)
	theirs, _ := have["properties"].(map[string]any)
	for name, w := range properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		w, _ := w.(map[string]any)
		if h, ok := theirs[name].(map[string]any); ok {
			missing = append(missing, missingFields(at, w, h)...)
		} else {
			missing = append(missing, at)
		}
	}
	slices.Sort(missing)
	return missing
}
