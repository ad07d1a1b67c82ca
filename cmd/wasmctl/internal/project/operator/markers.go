// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// rule is a right that a program requests, in the form of controller-gen.
type rule struct {
	groups, resources, names, verbs []string
	namespace                       string
}

// The comments of a program that describe its rights and its webhooks.
const (
	rbacMarker    = "+kubebuilder:rbac:"
	webhookMarker = "+kubebuilder:webhook:"
)

// markers calls f with the values of each comment of a Go file that begins with the marker.
func markers(file string, src []byte, marker string, f func(values map[string][]string) error) error {
	if !bytes.Contains(src, []byte(marker)) {
		return nil
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), marker)
			if !ok {
				continue
			}
			values, err := parseMarker(text)
			if err == nil {
				err = f(values)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", fset.Position(c.Pos()), marker, err)
			}
		}
	}
	return nil
}

// rulesOf returns the rules of the rbacMarker comments of a Go file.
func rulesOf(file string, src []byte) (rules []rule, err error) {
	err = markers(file, src, rbacMarker, func(values map[string][]string) error {
		for key := range values {
			if !slices.Contains([]string{"groups", "resources", "resourceNames", "verbs", "namespace", "urls", "featureGate", "roleName"}, key) {
				return fmt.Errorf("%q is not known", key)
			}
		}
		r := rule{groups: values["groups"], resources: values["resources"], names: values["resourceNames"], verbs: values["verbs"]}
		if namespace := values["namespace"]; len(namespace) > 0 {
			r.namespace = namespace[0]
		}
		rules = append(rules, r)
		return nil
	})
	return rules, err
}

// parseMarker reads groups=a;b,resources=c,verbs=get;list. A value may be quoted, a list may be in
// braces, and it may continue after a comma: verbs=get,list.
func parseMarker(text string) (map[string][]string, error) {
	values := map[string][]string{}
	key := ""
	for text = strings.TrimSpace(text); text != ""; {
		var part string
		part, text = cutValue(text)
		value := part
		if k, v, ok := strings.Cut(part, "="); ok {
			key, value = strings.TrimSpace(k), v
		}
		if key == "" {
			return nil, fmt.Errorf("%q has no value", part)
		}
		values[key] = append(values[key], split(value)...)
	}
	return values, nil
}

// cutValue splits at the first comma outside quotes and braces.
func cutValue(s string) (value, rest string) {
	var quote rune
	depth := 0
	for i, c := range s {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"', c == '`', c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			return s[:i], strings.TrimSpace(s[i+1:])
		}
	}
	return s, ""
}

// split returns the items of a list, without quotes. It returns at least one item.
func split(s string) []string {
	s = strings.TrimSpace(s)
	separator := ";"
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		s, separator = strings.TrimSuffix(inner, "}"), ","
	}
	items := strings.Split(s, separator)
	for i := range items {
		items[i] = strings.Trim(strings.TrimSpace(items[i]), "\"'`")
	}
	return items
}
