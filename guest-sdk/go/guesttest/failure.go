// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"slices"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// failure is an answer that is not OK.
type failure struct{ wasmctl.Error }

func apiFailure(code int, reason, message string) *failure {
	return &failure{wasmctl.Error{Status: code, Reason: reason, Message: message}}
}

func badRequest(message string) *failure {
	return apiFailure(wasmctl.StatusBadRequest, "BadRequest", message)
}

// notServed is the answer for features that this host lacks; such a test needs
// a real cluster.
func notServed(what string) *failure {
	return apiFailure(wasmctl.StatusUnsupported, "Unsupported", "guesttest does not serve "+what)
}

func (h *Host) notFound(r *request) *failure {
	return apiFailure(404, "NotFound", h.named(r)+" not found")
}

// named returns the object's name in the style of the API server: configmaps
// "a".
func (h *Host) named(r *request) string {
	s := h.plural(r.ref.Kind)
	if r.id.group != "" {
		s += "." + r.id.group
	}
	return s + " \"" + r.ref.Name + "\""
}

// holds checks the preconditions before obj replaces the object.
func (h *Host) holds(r *request, obj map[string]any) *failure {
	for _, field := range []string{"uid", "resourceVersion"} {
		have := str(r.old, "metadata", field)
		for _, want := range []string{str(r.msg, "preconditions", field), str(obj, "metadata", field)} {
			if want != "" && want != have {
				return apiFailure(409, "Conflict", "Operation cannot be fulfilled on "+h.named(r)+
					": "+field+" is "+have+", not "+want+"; please apply your changes to the latest version and try again")
			}
		}
	}
	return nil
}

// valid makes the checks that the API server makes for every object.
func (h *Host) valid(r *request, obj map[string]any) *failure {
	controllers := 0
	for _, m := range ownerRefs(obj) {
		if m["controller"] == true {
			controllers++
		}
		if str(m, "apiVersion") == "" || str(m, "kind") == "" || str(m, "name") == "" || str(m, "uid") == "" {
			return apiFailure(422, "Invalid", h.named(r)+" is invalid: metadata.ownerReferences: apiVersion, kind, name and uid are required")
		}
	}
	if controllers > 1 {
		return apiFailure(422, "Invalid", h.named(r)+" is invalid: metadata.ownerReferences: Only one reference can have Controller set to true")
	}
	return nil
}

// allowed checks the request against the rights of every module and the
// manifest's capabilities.
func (h *Host) allowed(r *request) *failure {
	need := wasmctl.Capability{Group: r.id.group, Resource: h.plural(r.ref.Kind), Verbs: []string{operations[r.op].verb}}
	if r.sub != "" {
		need.Subresources = []string{r.sub}
	}
	may := func(c wasmctl.Capability) bool { return allows(&c, r, &need) }
	if slices.ContainsFunc(h.ownRights(), may) || slices.ContainsFunc(h.manifest.Capabilities, may) {
		return nil
	}
	if r.ref.Namespace != "" {
		need.Namespaces = []string{r.ref.Namespace}
	}
	what := strings.Join(append([]string{need.Resource}, need.Subresources...), "/")
	return &failure{wasmctl.Error{
		Status: wasmctl.StatusDenied, Reason: "Denied", Rule: &need,
		Message: "the manifest has no capability to " + need.Verbs[0] + " " + what,
	}}
}

// ownRights returns the rights of every module: to read the objects that it
// reconciles and to write their status (abi/ABI.md, section 8).
func (h *Host) ownRights() []wasmctl.Capability {
	w := h.manifest.For
	if w == nil {
		return nil
	}
	read := wasmctl.Capability{Group: w.Group, Resource: h.plural(w.Kind), Verbs: []string{"get", "list", "watch"}, Namespaces: w.Namespaces}
	status := read
	status.Subresources, status.Verbs = []string{"status"}, []string{"get", "update", "patch"}
	return []wasmctl.Capability{read, status}
}

func allows(c *wasmctl.Capability, r *request, need *wasmctl.Capability) bool {
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	return c.Group == need.Group && c.Resource == need.Resource &&
		(slices.Contains(c.Verbs, need.Verbs[0]) || slices.Contains(c.Verbs, "*")) &&
		(r.sub == "" && len(c.Subresources) == 0 || slices.Contains(c.Subresources, r.sub)) &&
		in(c.Namespaces, r.ref.Namespace) && in(c.Names, r.ref.Name)
}

// plural guesses the plural of a kind.
func (h *Host) plural(kind string) string {
	if p, ok := h.store.plurals[kind]; ok {
		return p
	}
	return wasmctl.Plural(kind)
}
