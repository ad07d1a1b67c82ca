// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// admission is a request to the API server that the live module has judged.
type admission struct {
	hook    abi.Webhook
	request abi.Admission
	verdict abi.AdmissionResult
}

// Admitted records a request that the live module has judged, if there is a shadow. The shadow judges it later.
func (r *Recorder) Admitted(w *abi.Webhook, a *abi.Admission, verdict abi.AdmissionResult) {
	if x := r.shadow.Load(); x != nil {
		request := *a
		request.Object, request.Old, request.Options = slices.Clone(a.Object), slices.Clone(a.Old), slices.Clone(a.Options)
		x.offer(&admission{*w, request, verdict})
	}
}

func (a *admission) id() (abi.Key, string) { return a.request.Key, a.request.ID }

// compare judges the request by the other module, and returns the differences.
func (a *admission) compare(ctx context.Context, x *shadowing) ([]shadow.Difference, error) {
	served := slices.ContainsFunc(x.candidate.Manifest().Webhooks, func(w abi.Webhook) bool { return w.Path == a.hook.Path && w.Type == a.hook.Type })
	other := shadow.Run{Error: "the module has no webhook " + a.hook.Path}
	if served {
		request := a.request
		if verdict, err := x.candidate.Admit(ctx, a.hook.Type, &request); err != nil {
			other.Error, _, _ = strings.Cut(err.Error(), "\n") // a stack trace follows
		} else {
			other = *x.verdict(a, &verdict)
		}
	}
	return x.hidden(shadow.Compare(x.verdict(a, &a.verdict), &other, 0)), nil
}

// verdict returns the part of a verdict that is compared: a denial as an error, the change of the object as a write, and the warnings.
func (x *shadowing) verdict(a *admission, v *abi.AdmissionResult) *shadow.Run {
	out := &shadow.Run{}
	if v.Denied != nil {
		out.Error = "denied: " + v.Denied.Text()
	}
	write := func(what string, body any) {
		t := &a.request.Target
		kind := strings.TrimPrefix(t.Group+"/"+t.Version+"/"+t.Kind, "/")
		out.Writes = append(out.Writes, shadow.Write{What: what, Kind: kind, Key: a.request.Key, Body: body})
	}
	if v.Object != nil {
		base := a.request.Object
		if v.Base != nil {
			base = v.Base
		}
		x.values.Learn(a.request.Object)
		if changed := changes(decoded(base), decoded(v.Object)); changed != nil {
			write(string(a.hook.Type), changed)
		}
	}
	if len(v.Warnings) > 0 {
		list := make([]any, len(v.Warnings))
		for i, text := range v.Warnings {
			list[i] = text
		}
		write("warn about", list)
	}
	return out
}

// decoded returns a value, or nil if it cannot be decoded.
func decoded(b []byte) any {
	v, err := abi.DecodeValue(b)
	if err != nil {
		return nil
	}
	return v
}

// changes returns the merge patch from one value to another, or nil if they are equal. Types of a guest that lack some fields have no
// effect on it.
func changes(from, to any) any {
	before, ok := from.(map[string]any)
	after, both := to.(map[string]any)
	if !ok || !both {
		if reflect.DeepEqual(from, to) {
			return nil
		}
		return to
	}
	patch := map[string]any{}
	for key, value := range after {
		if old, had := before[key]; !had {
			patch[key] = value
		} else if changed := changes(old, value); changed != nil {
			patch[key] = changed
		}
	}
	for key := range before {
		if _, has := after[key]; !has {
			patch[key] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}
