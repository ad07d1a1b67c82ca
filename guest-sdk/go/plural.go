// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "strings"

// Plural returns the usual resource of a kind, by the rules of kubebuilder:
// "gateways" for Gateway. It is a guess; the CustomResourceDefinition of a kind
// may have another name. The rules of kubebuilder are too large for a module, so
// this is the part of them that names of kinds need.
func Plural(kind string) string {
	s := lower(kind)
	for _, r := range plurals {
		if stem, ok := strings.CutSuffix(s, r.end); ok {
			return stem + r.plural
		}
	}
	return s + "s"
}

// lower returns the text of a kind, which is ASCII, in lower case. The tables of Unicode are too
// large for a module.
func lower(kind string) string {
	b := []byte(kind)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// plurals are endings and their plurals; the first that matches is used.
// guest-sdk/rust has the same table.
var plurals = [...]struct{ end, plural string }{
	{"person", "people"},
	{"child", "children"},
	{"mouse", "mice"},
	{"human", "humans"},
	{"woman", "women"},
	{"index", "indices"},
	{"vertex", "vertices"},
	{"vortex", "vortices"},
	{"trix", "trices"},
	{"criterion", "criteria"},
	{"fish", "fish"},
	{"data", "data"},
	{"media", "media"},
	{"information", "information"},
	{"equipment", "equipment"},
	{"chassis", "chassis"},
	{"sis", "ses"},
	{"us", "uses"},
	{"ss", "sses"},
	{"s", "s"},
	{"ch", "ches"},
	{"sh", "shes"},
	{"x", "xes"},
	{"iz", "izzes"},
	{"zz", "zzes"},
	{"ay", "ays"},
	{"ey", "eys"},
	{"oy", "oys"},
	{"quy", "quies"},
	{"uy", "uys"},
	{"y", "ies"},
	{"ano", "anos"},
	{"io", "ios"},
	{"lo", "los"},
	{"oo", "oos"},
	{"to", "tos"},
	{"o", "oes"},
	{"lf", "lves"},
	{"eaf", "eaves"},
	{"fe", "ves"},
	{"atum", "ata"},
	{"ium", "ia"},
}
