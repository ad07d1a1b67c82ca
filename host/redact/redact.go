// SPDX-License-Identifier: Apache-2.0

// Package redact keeps the values of Secrets out of logs, errors, diffs, histories and audit files.
// Distinct hides them in an object that is shown. Values has the values that a module has read, and
// hides them in any text.
//
//	shown := redact.Distinct("", "Secret", object)
//
//	var values redact.Values
//	values.Learn(packed)              // what a guest was given
//	line := values.Text(guestMessage) // before it is cut or logged
//
// It cannot stop a malicious guest: a guest that can read a Secret can write it in another form
// (reversed, letter by letter). The policy decides which Secrets a module can read.
package redact

import (
	"fmt"
	"hash/maphash"
	"maps"
)

// Mark replaces a value.
const Mark = "[redacted]"

// lastApplied is the annotation in which kubectl stores a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// IsSecret reports whether objects of a kind have hidden values. For a list, kind must be the kind
// of its items.
func IsSecret(group, kind string) bool {
	return group == "" && kind == "Secret" || group == "authentication.k8s.io" && kind == "TokenRequest"
}

// Distinct returns an object without its secret values, for diffs. Each value is replaced by
// "[redacted #5f3a90c1]", and equal values by the same text. The number has no meaning outside this
// process, and does not reveal the value. Keys stay. Objects other than Secrets and lists of them
// are returned unchanged. Otherwise, the changed parts are copied, and the given object is not
// modified. group and kind are those of the resource, for patches and parts without their own. The
// object's own kind counts too.
func Distinct(group, kind string, object map[string]any) map[string]any {
	if !IsSecret(group, kind) && !isSecretObject(object) {
		return hideItems(object)
	}
	out := maps.Clone(object)
	for _, field := range []string{"data", "stringData"} {
		if values, ok := out[field].(map[string]any); ok {
			marked := make(map[string]any, len(values))
			for k, v := range values {
				marked[k] = tagged(v)
			}
			out[field] = marked
		} else if v, there := out[field]; there && v != nil {
			out[field] = tagged(v)
		}
	}
	within(out, "status", "token")
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		within(meta, "annotations", lastApplied)
		out["metadata"] = meta
	}
	return hideItems(out)
}

var seed = maphash.MakeSeed()

func tagged(value any) any {
	text, ok := value.(string)
	if !ok {
		text = fmt.Sprint(value)
	}
	return fmt.Sprintf("[redacted #%08x]", uint32(maphash.String(seed, text))) //nolint:gosec // any 32 bits suffice
}

// within redacts a field of a map in object, which it copies.
func within(object map[string]any, name, field string) {
	part, ok := object[name].(map[string]any)
	if !ok {
		return
	}
	if v, there := part[field]; there {
		part = maps.Clone(part)
		part[field] = tagged(v)
		object[name] = part
	}
}

// hideItems hides values in the items of a list of Secrets, which have no kind of their own, and of
// a mixed list, which do.
func hideItems(object map[string]any) map[string]any {
	items, ok := object["items"].([]any)
	if !ok {
		return object
	}
	group, kind := "", ""
	if object["kind"] == "SecretList" {
		kind = "Secret"
	}
	hidden := make([]any, len(items))
	for i, item := range items {
		hidden[i] = item
		if m, ok := item.(map[string]any); ok {
			hidden[i] = Distinct(group, kind, m)
		}
	}
	out := maps.Clone(object)
	out["items"] = hidden
	return out
}

// isSecretObject reports whether an object has the kind Secret. The version does not matter: an
// object without one is hidden too.
func isSecretObject(object map[string]any) bool {
	return object["kind"] == "Secret" || object["kind"] == "TokenRequest"
}
