package operator

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// rule is a right that a program says it needs, as controller-gen has it.
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

// parseMarker reads groups=a;b,resources=c,verbs=get;list. A value may be quoted,
// and a list may be in braces.
func parseMarker(text string) (rule, error) {
	var r rule
	for text = strings.TrimSpace(text); text != ""; {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			return r, fmt.Errorf("%q has no value", text)
		}
		var value string
		value, text = cutValue(rest)
		list := split(value)
		switch strings.TrimSpace(key) {
		case "groups":
			r.groups = list
		case "resources":
			r.resources = list
		case "resourceNames":
			r.names = list
		case "verbs":
			r.verbs = list
		case "namespace":
			r.namespace = list[0]
		case "urls", "featureGate", "roleName":
		default:
			return r, fmt.Errorf("%q is not known", key)
		}
	}
	return r, nil
}

// cutValue splits at the first comma outside of quotes and braces.
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

// split returns the items of a list, without quotes. It has at least one.
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
