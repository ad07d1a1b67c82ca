package project

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
)

// marker begins a comment that says a rule of an operator's role.
const marker = "+kubebuilder:rbac:"

// operatorRights returns the capabilities of an operator: what its markers say
// or, where it has none, the roles in its config/rbac.
func operatorRights(root string) ([]abi.Capability, error) {
	rules, err := markedRules(root)
	if err == nil && len(rules) == 0 {
		rules, err = roleRules(filepath.Join(root, "config", "rbac"))
	}
	if err != nil {
		return nil, err
	}
	rights := []abi.Capability{}
	for i := range rules {
		rights = append(rights, capabilities(&rules[i])...)
	}
	slices.SortStableFunc(rights, func(a, b abi.Capability) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return slices.CompactFunc(rights, func(a, b abi.Capability) bool { return fmt.Sprint(a) == fmt.Sprint(b) }), nil
}

// rule is an RBAC rule, and the namespaces that its marker narrows it to.
type rule struct {
	rbacv1.PolicyRule

	namespaces []string
}

// markedRules reads the markers in all Go files below root.
func markedRules(root string) ([]rule, error) {
	var rules []rule
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for n := 1; lines.Scan(); n++ {
			comment, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "//")
			args, isMarker := strings.CutPrefix(strings.TrimSpace(comment), marker)
			if !ok || !isMarker {
				continue
			}
			r, err := parseMarker(args)
			if err != nil {
				return fmt.Errorf("%s:%d: %s: %w", path, n, marker, err)
			}
			rules = append(rules, r)
		}
		return nil
	})
	return rules, err
}

// parseMarker reads "groups=apps,resources=deployments;pods,verbs=get;list".
func parseMarker(args string) (r rule, err error) {
	for arg := range strings.SplitSeq(args, ",") {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return r, fmt.Errorf("%q: want key=value", arg)
		}
		list := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(`;"{} `, c) })
		switch key {
		case "groups":
			if r.APIGroups = list; len(list) == 0 {
				r.APIGroups = []string{""}
			}
		case "resources":
			r.Resources = list
		case "verbs":
			r.Verbs = list
		case "resourceNames":
			r.ResourceNames = list
		case "namespace":
			r.namespaces = list
		case "urls", "roleName": // of the API server's own pages, and of the role's file
		default:
			return r, fmt.Errorf("%s: is not known", key)
		}
	}
	return r, nil
}

// roleRules reads the roles in a folder; none if it does not exist.
func roleRules(dir string) ([]rule, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*role.yaml"))
	if err != nil {
		return nil, err
	}
	var rules []rule
	for _, file := range files {
		if name := filepath.Base(file); strings.HasPrefix(name, "leader_") || strings.HasPrefix(name, "metrics_") {
			continue // of the manager, which the host is
		}
		text, err := os.ReadFile(file) //nolint:gosec // of the project
		if err != nil {
			return nil, err
		}
		for doc := range strings.SplitSeq(string(text), "\n---") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, r := range role.Rules {
				rules = append(rules, rule{PolicyRule: r})
			}
		}
	}
	return rules, nil
}

// Verbs that a module can have. It needs none to watch, and deletes a collection by
// listing it.
var moduleVerbs = []string{"*", "get", "list", "create", "update", "patch", "delete"}

// hostGroups are those that an operator's manager needs for itself; in a module that
// is the host.
var hostGroups = []string{"coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}

// capabilities returns what a rule is for a module.
func capabilities(r *rule) (rights []abi.Capability) {
	verbs := slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return !slices.Contains(moduleVerbs, v) })
	if slices.Contains(r.Verbs, "deletecollection") && !slices.Contains(r.Verbs, "*") {
		verbs = append(verbs, "list", "delete")
	}
	slices.Sort(verbs)
	if verbs = slices.Compact(verbs); len(verbs) == 0 {
		return nil
	}
	for _, group := range r.APIGroups {
		if slices.Contains(hostGroups, group) {
			continue
		}
		if group == "core" {
			group = ""
		}
		for _, resource := range r.Resources {
			name, sub, _ := strings.Cut(resource, "/")
			c := abi.Capability{Group: group, Resource: name, Verbs: verbs, Names: r.ResourceNames, Namespaces: r.namespaces}
			if sub != "" {
				c.Subresources = []string{sub}
			}
			if name == "events" && (group == "" || group == "events.k8s.io") { // the host writes them
				c = abi.Capability{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}}
			}
			rights = append(rights, c)
		}
	}
	return rights
}
