// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	_ "embed"
	"strings"

	"sigs.k8s.io/yaml"
)

// CRDs are the CustomResourceDefinitions of the kinds, as YAML documents.
//
//go:embed crds.yaml
var CRDs string

// CRDObjects returns the CRDs as objects.
func CRDObjects() (list []any, err error) {
	for _, doc := range strings.Split(CRDs, "\n---\n")[1:] {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}
