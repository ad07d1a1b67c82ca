// Package redact keeps the values of Secrets out of what people read: logs,
// errors, diffs, histories, audit files. Object hides them in an object that is
// shown; Values knows those that a module has read and hides them in any text.
//
//	shown := redact.Object("", "Secret", object)
//
//	var values redact.Values
//	values.Learn(packed)              // what a guest was given
//	line := values.Text(guestMessage) // before it is cut or logged
//
// It cannot stop a guest that means to leak: who may read a Secret can write
// it in another form (reversed, letter by letter). What a module may read is the
// policy's business.
package redact

import (
	"fmt"
	"hash/maphash"
	"maps"

	"github.com/wasmctl/wasmctl/abi"
)

// Mark stands where a value was.
const Mark = "[redacted]"

// lastApplied is the annotation in which kubectl keeps a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// IsSecret reports whether objects of a kind hold values that are hidden. A kind
// ending in "List" is asked about by its items' kind.
func IsSecret(group, kind string) bool {
	return group == "" && kind == "Secret" || group == "authentication.k8s.io" && kind == "TokenRequest"
}

// Object returns an object with Mark in the place of each secret value. Keys
// stay. What is no Secret, nor a list of them, comes back as it is; else the
// parts that change are copied, and the given object is left alone. group and
// kind are those of the resource, for patches and parts that do not name
// theirs; what the object says of itself counts too.
func Object(group, kind string, object map[string]any) map[string]any {
	return hide(group, kind, object, func(any) any { return Mark })
}

// Distinct is Object with marks that differ where the values do, for diffs:
// "[redacted #5f3a90c1]". The number means nothing outside this process, and
// cannot be turned back.
func Distinct(group, kind string, object map[string]any) map[string]any {
	return hide(group, kind, object, tagged)
}

var seed = maphash.MakeSeed()

func tagged(value any) any {
	text, ok := value.(string)
	if !ok {
		text = fmt.Sprint(value)
	}
	return fmt.Sprintf("[redacted #%08x]", uint32(maphash.String(seed, text))) //nolint:gosec // any 32 bits will do
}

// Packed is Object for msgpack. The error is abi.DecodeObject's.
func Packed(group, kind string, object []byte) ([]byte, error) {
	if !IsSecret(group, kind) && !mentions(object) {
		return object, nil
	}
	m, err := abi.DecodeObject(object)
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return abi.AppendValue(nil, Object(group, kind, m))
}

func hide(group, kind string, object map[string]any, mark func(any) any) map[string]any {
	if !IsSecret(group, kind) && !isSecretObject(object) {
		return hideItems(object, mark)
	}
	out := maps.Clone(object)
	for _, field := range []string{"data", "stringData"} {
		if values, ok := out[field].(map[string]any); ok {
			marked := make(map[string]any, len(values))
			for k, v := range values {
				marked[k] = mark(v)
			}
			out[field] = marked
		} else if v, there := out[field]; there && v != nil {
			out[field] = mark(v)
		}
	}
	within(out, "status", "token", mark)
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		within(meta, "annotations", lastApplied, mark)
		out["metadata"] = meta
	}
	return hideItems(out, mark)
}

// within marks the field of a map that lies in object, which is copied.
func within(object map[string]any, name, field string, mark func(any) any) {
	part, ok := object[name].(map[string]any)
	if !ok {
		return
	}
	if v, there := part[field]; there {
		part = maps.Clone(part)
		part[field] = mark(v)
		object[name] = part
	}
}

// hideItems hides in the items of a list of Secrets, which do not say what they
// are, and in those of a mixed list, which do.
func hideItems(object map[string]any, mark func(any) any) map[string]any {
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
			hidden[i] = hide(group, kind, m, mark)
		}
	}
	out := maps.Clone(object)
	out["items"] = hidden
	return out
}

// isSecretObject reports whether an object says that it is one. The version is
// not looked at: an object without one is hidden too.
func isSecretObject(object map[string]any) bool {
	return object["kind"] == "Secret" || object["kind"] == "TokenRequest"
}
