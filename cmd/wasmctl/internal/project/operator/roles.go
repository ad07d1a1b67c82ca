// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/strictjson"
)

// rules returns the rules of the packages' markers and of the roles in the operator's deployment:
// some rules in roles do not come from markers.
func (p *Project) rules(packages []pkg) ([]rule, error) {
	var all []rule
	err := eachSource(packages, func(file string, src []byte) error {
		rules, err := rulesOf(file, src)
		all = append(all, rules...)
		return err
	})
	if err != nil {
		return nil, err
	}
	own, _, err := rulesOfFile(filepath.Join(p.Root, "config", "rbac", "role.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	more, err := rulesOfFiles(p.Roles)
	return slices.Concat(all, own, more), err
}

// rulesOfFiles returns the rules of the roles in files.
func rulesOfFiles(files []string) (all []rule, err error) {
	for _, file := range files {
		rules, hooks, err := rulesOfFile(file)
		if err == nil && len(rules)+len(hooks) == 0 {
			err = fmt.Errorf("roles[%s]: has no Role, ClusterRole or webhook configuration; the file needs one, for example from the output of helm template", file)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	return all, nil
}

// Rights returns the rights of the roles in files, in the form of a manifest. It is for programs that
// are not operators, so a rule must name each group and resource.
func Rights(files []string) ([]abi.Capability, error) {
	rules, err := rulesOfFiles(files)
	if err != nil {
		return nil, err
	}
	asked, refused := capabilities(rules, true)
	for _, c := range asked {
		if c.Resource == "*" {
			refused = append(refused, c.Group+"/*")
		}
	}
	if len(refused) > 0 {
		return nil, fmt.Errorf("roles[%s]: a manifest names each group and each resource: replace the rules for %s", strings.Join(files, ", "), strings.Join(refused, ", "))
	}
	return asked, nil
}

// eachSource calls f with each Go file of the program's packages.
func eachSource(packages []pkg, f func(file string, src []byte) error) error {
	for i := range packages {
		if !packages[i].ofProgram() {
			continue
		}
		for _, name := range packages[i].GoFiles {
			file := filepath.Join(packages[i].Dir, name)
			src, err := os.ReadFile(file)
			if err == nil {
				err = f(file, src)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
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

// rulesOfFile reads the roles and the webhook configurations of a file, which may also have other
// objects.
func rulesOfFile(file string) (rules []rule, hooks []abi.Webhook, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("roles[%s]: %w", file, err)
	}
	for document := range documents(text) {
		js, err := yaml.YAMLToJSONStrict([]byte(document))
		var head struct {
			Kind string `json:"kind"`
		}
		if err == nil {
			err = strictjson.Unmarshal(js, &head)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("roles[%s]: %w", file, err)
		}
		switch head.Kind {
		case "Role", "ClusterRole":
			var r role
			err = strictjson.Unmarshal(js, &r)
			rules = append(rules, r.rules()...)
		case "ValidatingWebhookConfiguration":
			hooks, err = appendConfigured(hooks, abi.WebhookValidate, js)
		case "MutatingWebhookConfiguration":
			hooks, err = appendConfigured(hooks, abi.WebhookDefault, js)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("roles[%s]: %w", file, err)
		}
	}
	return rules, hooks, nil
}

// rules returns the rules of a role. There are none if it is for people.
func (r *role) rules() (list []rule) {
	if r.ofPeople() {
		return nil
	}
	for _, one := range r.Rules {
		list = append(list, rule{groups: one.APIGroups, resources: one.Resources, names: one.ResourceNames, verbs: one.Verbs, namespace: r.Metadata.Namespace})
	}
	return list
}
