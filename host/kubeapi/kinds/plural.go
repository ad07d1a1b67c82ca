// SPDX-License-Identifier: Apache-2.0

package kinds

import "strings"

// Plural returns the resource of a kind that no API server can be asked about. It is the plural
// that kubebuilder writes into CustomResourceDefinitions: "Gateway" becomes "gateways". The library
// of kubebuilder allocates 4.7 MB at the start of each process, so this is the part of its rules
// that names of kinds need. A test compares both.
func Plural(kind string) string {
	s := strings.ToLower(kind)
	for _, r := range plurals {
		if stem, ok := strings.CutSuffix(s, r.end); ok {
			return stem + r.plural
		}
	}
	return s + "s"
}

// plurals are endings and their plurals; the first that matches is used.
// The SDKs for Go and Rust have the same table.
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
