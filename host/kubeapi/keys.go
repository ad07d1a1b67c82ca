// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// badRequest is the error of a malformed request. Its text explains what to change. The guest gets
// it as StatusBadRequest.
type badRequest string

// Error implements error.
func (e badRequest) Error() string { return string(e) }

func badf(format string, args ...any) error { return badRequest(fmt.Sprintf(format, args...)) }

// requestKey is a row of the table of request keys in ABI.md, section 6.
type requestKey struct {
	name  string
	given func(*abi.APIRequest) bool
	// ops may have the key, and required must have it.
	ops, required []abi.Op
}

var (
	opsObject    = []abi.Op{abi.OpAPICreate, abi.OpAPIUpdate, abi.OpAPIApply}
	opsWrite     = append([]abi.Op{abi.OpAPIPatch}, opsObject...)
	opsNamed     = []abi.Op{abi.OpAPIGet, abi.OpCacheGet, abi.OpAPIPatch, abi.OpAPIDelete}
	opsDelete    = []abi.Op{abi.OpAPIDelete}
	opsPatch     = []abi.Op{abi.OpAPIPatch}
	opsList      = []abi.Op{abi.OpAPIList, abi.OpCacheList}
	opsRead      = []abi.Op{abi.OpAPIGet, abi.OpAPIList}
	opsCacheList = []abi.Op{abi.OpCacheList}
	opsCache     = []abi.Op{abi.OpCacheGet, abi.OpCacheList}
)

// requestKeys omits apiVersion, kind and namespace: every operation accepts them, and whether it
// needs them depends on the object and the kind.
var requestKeys = []requestKey{
	{"name", func(r *abi.APIRequest) bool { return r.Name != "" }, append(slices.Clone(opsNamed), opsObject...), opsNamed},
	{"subresource", func(r *abi.APIRequest) bool { return r.Subresource != "" }, append([]abi.Op{abi.OpAPIGet}, opsWrite...), nil},
	{"object", func(r *abi.APIRequest) bool { return r.Object != nil }, opsObject, opsObject},
	{"patch", func(r *abi.APIRequest) bool { return r.Patch != nil }, opsPatch, opsPatch},
	{"patchType", func(r *abi.APIRequest) bool { return r.PatchType != "" }, opsPatch, opsPatch},
	{"dryRun", func(r *abi.APIRequest) bool { return r.DryRun }, append([]abi.Op{abi.OpAPIDelete}, opsWrite...), nil},
	{"fieldManager", func(r *abi.APIRequest) bool { return r.FieldManager != "" }, opsWrite, nil},
	{"fieldValidation", func(r *abi.APIRequest) bool { return r.FieldValidation != "" }, opsWrite, nil},
	{"force", func(r *abi.APIRequest) bool { return r.Force }, []abi.Op{abi.OpAPIApply}, nil},
	{
		"preconditions", func(r *abi.APIRequest) bool { return r.Preconditions != nil && *r.Preconditions != abi.Preconditions{} },
		[]abi.Op{abi.OpAPIUpdate, abi.OpAPIPatch, abi.OpAPIApply, abi.OpAPIDelete},
		nil,
	},
	{"propagationPolicy", func(r *abi.APIRequest) bool { return r.PropagationPolicy != "" }, opsDelete, nil},
	{"gracePeriodSeconds", func(r *abi.APIRequest) bool { return r.GracePeriodSeconds != nil }, opsDelete, nil},
	{"labelSelector", func(r *abi.APIRequest) bool { return r.LabelSelector != "" }, opsList, nil},
	{"fieldSelector", func(r *abi.APIRequest) bool { return r.FieldSelector != "" }, opsList, nil},
	{"owner", func(r *abi.APIRequest) bool { return r.Owner != "" }, opsCacheList, nil},
	{"index", func(r *abi.APIRequest) bool { return r.Index != "" }, opsCacheList, nil},
	{"value", func(r *abi.APIRequest) bool { return r.Value != "" }, opsCacheList, nil},
	{"entries", func(r *abi.APIRequest) bool { return len(r.Entries) > 0 }, opsCacheList, nil},
	{"limit", func(r *abi.APIRequest) bool { return r.Limit != 0 }, opsList, nil},
	{"continue", func(r *abi.APIRequest) bool { return r.Continue != "" }, opsList, nil},
	{"resourceVersion", func(r *abi.APIRequest) bool { return r.ResourceVersion != "" }, opsRead, nil},
	{"resourceVersionMatch", func(r *abi.APIRequest) bool { return r.ResourceVersionMatch != "" }, opsRead, nil},
}

// checkKeys reports every key that the operation does not accept, and every key that it lacks. A
// key with a zero value counts as absent (ABI.md, section 3).
func checkKeys(op abi.Op, r *abi.APIRequest) error {
	if err := checkTexts(r); err != nil {
		return err
	}
	var wrong []string
	for i := range requestKeys {
		k := &requestKeys[i]
		given := k.given(r)
		switch {
		case given && !slices.Contains(k.ops, op):
			wrong = append(wrong, fmt.Sprintf("%s is not a key of %s: remove it (keys of %s)", k.name, op, opNames(k.ops)))
		case !given && slices.Contains(k.required, op):
			wrong = append(wrong, fmt.Sprintf("%s is needed by %s", k.name, op))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return badf("%s", strings.Join(wrong, "; "))
}

// checkTexts limits the texts of a request, for any operation.
func checkTexts(r *abi.APIRequest) error {
	var p abi.Preconditions
	if r.Preconditions != nil {
		p = *r.Preconditions
	}
	for _, text := range [...]struct {
		key, value string
		limit      int
	}{
		{"apiVersion", r.APIVersion, maxText},
		{"kind", r.Kind, maxText},
		{"namespace", r.Namespace, maxText},
		{"name", r.Name, maxText},
		{"subresource", r.Subresource, maxText},
		{"patchType", string(r.PatchType), maxText},
		{"fieldManager", r.FieldManager, maxText},
		{"fieldValidation", r.FieldValidation, maxText},
		{"propagationPolicy", r.PropagationPolicy, maxText},
		{"resourceVersion", r.ResourceVersion, maxText},
		{"resourceVersionMatch", r.ResourceVersionMatch, maxText},
		{"preconditions.uid", p.UID, maxText},
		{"preconditions.resourceVersion", p.ResourceVersion, maxText},
		{"labelSelector", r.LabelSelector, maxSelector},
		{"fieldSelector", r.FieldSelector, maxSelector},
		{"owner", r.Owner, maxText},
		{"index", r.Index, maxText},
		{"value", r.Value, maxSelector},
		{"continue", r.Continue, maxSelector},
	} {
		if err := checkText(text.key, len(text.value), text.limit); err != nil {
			return err
		}
	}
	return nil
}

func opNames(ops []abi.Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = string(op)
	}
	return strings.Join(names, ", ")
}

// isNil reports whether a raw value is msgpack's nil, which means an absent key.
func isNil(raw []byte) bool { return len(raw) == 1 && raw[0] == 0xc0 }
