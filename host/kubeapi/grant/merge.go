// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"reflect"
	"slices"
)

// Merge returns documents that grant the same as the given ones, and have each rule and each finalizer once: one
// document for each set of controllers that share some. Each given document has one controller, and nothing but
// rules and finalizers besides.
func Merge(documents []Document) []Document {
	var parts, out []Document // parts have one rule or one finalizer each
	add := func(part Document) {
		i := slices.IndexFunc(parts, func(p Document) bool {
			return reflect.DeepEqual(p.Capabilities, part.Capabilities) && slices.Equal(p.Finalizers, part.Finalizers)
		})
		if i < 0 {
			parts = append(parts, part)
		} else if !slices.Contains(parts[i].Controllers, part.Controllers[0]) {
			parts[i].Controllers = append(parts[i].Controllers, part.Controllers[0])
		}
	}
	for _, d := range documents {
		if len(d.Capabilities)+len(d.Finalizers) == 0 {
			out = append(out, d)
		}
		for i := range d.Capabilities {
			add(Document{Controllers: slices.Clone(d.Controllers), Capabilities: d.Capabilities[i : i+1]})
		}
		for i := range d.Finalizers {
			add(Document{Controllers: slices.Clone(d.Controllers), Finalizers: d.Finalizers[i : i+1]})
		}
	}
	for _, p := range parts {
		i := slices.IndexFunc(out, func(d Document) bool { return slices.Equal(d.Controllers, p.Controllers) })
		if i < 0 {
			i, out = len(out), append(out, Document{Controllers: p.Controllers})
		}
		out[i].Capabilities = append(out[i].Capabilities, p.Capabilities...)
		out[i].Finalizers = append(out[i].Finalizers, p.Finalizers...)
	}
	return out
}
