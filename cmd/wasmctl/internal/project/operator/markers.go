// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// rule is a right that a program requests, in the form of controller-gen.
type rule struct {
	groups, resources, names, verbs []string
	namespace                       string
}

const marker = "+kubebuilder:rbac:"

// markers returns the rules of the +kubebuilder:rbac comments of a Go file.
func markers(file string, src []byte) ([]rule, error) {
	if !bytes.Contains(src, []byte(marker)) {
		return nil, nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var rules []rule
	for _, group := range f.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), marker)
			if !ok {
				continue
			}
			r, err := parseMarker(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", fset.Position(c.Pos()), marker, err)
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// parseMarker reads groups=a;b,resources=c,verbs=get;list. A value may be quoted, a list may be in
// braces, and it may continue after a comma: verbs=get,list.
func parseMarker(text string) (rule, error) {
	values := map[string][]string{}
	key := ""
	for text = strings.TrimSpace(text); text != ""; {
		var part string
		part, text = cutValue(text)
		value := part
		if k, v, ok := strings.Cut(part, "="); ok {
			key, value = strings.TrimSpace(k), v
		}
		switch key {
		case "groups", "resources", "resourceNames", "verbs", "namespace", "urls", "featureGate", "roleName":
			values[key] = append(values[key], split(value)...)
		case "":
			return rule{}, fmt.Errorf("%q has no value", part)
		default:
			return rule{}, fmt.Errorf("%q is not known", key)
		}
	}
	r := rule{groups: values["groups"], resources: values["resources"], names: values["resourceNames"], verbs: values["verbs"]}
	if namespace := values["namespace"]; len(namespace) > 0 {
		r.namespace = namespace[0]
	}
	return r, nil
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
