// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// rules returns the rules of the packages' markers and of the roles in the operator's deployment:
// some rules in roles do not come from markers.
func (p *Project) rules(packages []pkg) ([]rule, error) {
	var all []rule
	for i := range packages {
		if !packages[i].ofProgram() {
			continue
		}
		for _, name := range packages[i].GoFiles {
			file := filepath.Join(packages[i].Dir, name)
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			rules, err := markers(file, src)
			if err != nil {
				return nil, err
			}
			all = append(all, rules...)
		}
	}
	own, err := rulesOfFile(filepath.Join(p.Root, "config", "rbac", "role.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all = append(all, own...)
	for _, file := range p.Roles {
		rules, err := rulesOfFile(file)
		if err == nil && len(rules) == 0 {
			err = fmt.Errorf("roles[%s]: has no rules of a Role or ClusterRole; the file needs a Role or ClusterRole, for example from the output of helm template", file)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	return all, nil
}

// role is a Role or a ClusterRole.
type role struct {
	Metadata struct {
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Rules []struct {
		APIGroups     []string `json:"apiGroups"`
		Resources     []string `json:"resources"`
		ResourceNames []string `json:"resourceNames"`
		Verbs         []string `json:"verbs"`
	} `json:"rules"`
}

// ofPeople reports whether a role is aggregated into Kubernetes' roles for people.
func (r *role) ofPeople() bool {
	for label := range r.Metadata.Labels {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	return false
}

// documents returns the documents of a YAML file.
func documents(text []byte) iter.Seq[string] { return strings.SplitSeq("\n"+string(text), "\n---") }

// rulesOfFile reads the roles of a file, which may also have other objects.
func rulesOfFile(file string) ([]rule, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("roles[%s]: %w", file, err)
	}
	var all []rule
	for document := range documents(text) {
		var head struct {
			Kind string `json:"kind"`
		}
		js, err := yaml.YAMLToJSONStrict([]byte(document))
		if err == nil {
			err = strictjson.Unmarshal(js, &head)
		}
		if err != nil {
			return nil, fmt.Errorf("roles[%s]: %w", file, err)
		}
		if head.Kind != "Role" && head.Kind != "ClusterRole" {
			continue
		}
		var r role
		if err := strictjson.Unmarshal(js, &r); err != nil {
			return nil, fmt.Errorf("roles[%s]: %w", file, err)
		}
		if r.ofPeople() {
			continue
		}
		for _, one := range r.Rules {
			all = append(all, rule{groups: one.APIGroups, resources: one.Resources, names: one.ResourceNames, verbs: one.Verbs, namespace: r.Metadata.Namespace})
		}
	}
	return all, nil
}
