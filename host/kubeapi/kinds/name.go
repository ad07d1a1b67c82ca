// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reading is one interpretation of a user's name for a kind.
type reading struct {
	// name is a plural, singular, short name or kind.
	name string
	// version is empty for the preferred version.
	version string
	// group may be the start of a group, unless exact is set. If it is empty, it means any group,
	// unless exact is set.
	group string
	exact bool
}

// versionPattern is the format of versions in Kubernetes.
var versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// parseName returns the readings of a name, the likeliest first. It accepts the names of kubectl,
// and the form of apiVersion and kind:
//
//	cm  configmap  configmaps  ConfigMap     any group
//	deployments.apps                         a group, or the start of one
//	deployments.v1.apps  configmaps.v1.      a version and a group
//	v1/ConfigMap  apps/v1/deployments        a group, a version, a name
func parseName(s string) ([]reading, error) {
	if parts := strings.Split(s, "/"); len(parts) > 1 {
		return parseSlashes(s, parts)
	}
	name, rest, dotted := strings.Cut(s, ".")
	if name == "" {
		return nil, badName(s)
	}
	if !dotted {
		return []reading{{name: name}}, nil
	}
	var readings []reading
	// Like kubectl, read the second word as a version first. Kinds of a group that starts with a
	// version's name need the longer forms.
	if version, group, ok := strings.Cut(rest, "."); ok && version != "" {
		readings = append(readings, reading{name: name, version: version, group: group, exact: true})
	}
	group := strings.TrimSuffix(rest, ".")
	if group == "" {
		return nil, badName(s)
	}
	return append(readings, reading{name: name, group: group}), nil
}

// ParseGVK returns the kind that a name has in full: a kind in CamelCase, a version and a group, in a form of
// parseName, such as apps/v1/Deployment. ok is false for any other name.
func ParseGVK(name string) (gvk schema.GroupVersionKind, ok bool) {
	readings, err := parseName(name)
	if err != nil {
		return gvk, false
	}
	r := likeliest(readings)
	ok = r.exact && versionPattern.MatchString(r.version) && r.name[0] >= 'A' && r.name[0] <= 'Z'
	return schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.name}, ok
}

func parseSlashes(s string, parts []string) ([]reading, error) {
	n := len(parts)
	if n > 3 || parts[n-1] == "" || !versionPattern.MatchString(parts[n-2]) {
		return nil, badName(s)
	}
	k := reading{name: parts[n-1], version: parts[n-2], exact: true}
	if n == 3 {
		if k.group = parts[0]; k.group == "" {
			return nil, badName(s)
		}
	}
	return []reading{k}, nil
}

func badName(s string) error {
	return fmt.Errorf("kind[%s]: %w: want for example configmaps, deployments.apps, deployments.v1.apps, v1/ConfigMap or apps/v1/Deployment",
		s, ErrBadName)
}

// likeliest returns the reading of a complete name, for a kind that does not exist yet.
func likeliest(readings []reading) reading {
	first := readings[0]
	if len(readings) > 1 && !versionPattern.MatchString(first.version) {
		return readings[1]
	}
	return first
}
