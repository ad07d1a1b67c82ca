// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// need is a right that an operation or a result needs.
type need struct {
	verb, group, kind, subresource string
}

// verbs maps operations to their verbs.
var verbs = map[abi.Op]string{
	abi.OpAPIGet: "get", abi.OpCacheGet: "get", abi.OpAPIList: "list", abi.OpCacheList: "list", abi.OpAPICreate: "create",
	abi.OpAPIUpdate: "update", abi.OpAPIPatch: "patch", abi.OpAPIApply: "patch", abi.OpAPIDelete: "delete",
}

// needOf returns the right for an operation with this request. If the request has no kind, it is
// that of the written object.
func needOf(op abi.Op, r *abi.APIRequest) need {
	group, kind := groupOf(r.APIVersion), r.Kind
	if kind == "" {
		group, kind = kindOf(r.Object)
	}
	return need{verbs[op], group, kind, r.Subresource}
}

// kindOf returns the kind of an object. It is empty if the object is invalid.
func kindOf(object []byte) (group, kind string) {
	o, _ := abi.DecodeObject(object)
	version, _ := o["apiVersion"].(string)
	kind, _ = o["kind"].(string)
	return groupOf(version), kind
}

// groupOf returns the group of an apiVersion, which is empty for the core kinds.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// declaredNeeds returns the rights for a declared result.
func declaredNeeds(d *abi.Declared) []need {
	if d == nil {
		return nil
	}
	var out []need
	for _, b := range d.Apply {
		if group, kind := kindOf(b); kind != "" { // otherwise checkChildren has reported it
			out = append(out, need{verb: "create", group: group, kind: kind}, need{verb: "patch", group: group, kind: kind})
		}
	}
	return out
}

// rights compares the rights that the runs used with those of the manifest. Only a cluster knows
// the resource of a kind. Here it is guessed from the name, so a missing right is a warning.
func (e *exam) rights() {
	m := e.module.Manifest()
	if m.For == nil && len(m.Capabilities) == 0 {
		return // without a manifest, which manifest has reported
	}
	needs := e.world.needed()
	var missing []string
	for _, n := range needs {
		if !allowed(m, n) {
			missing = append(missing, n.String())
		}
	}
	slices.Sort(missing)
	switch {
	case len(missing) > 0:
		e.add("rights", Warn, "no capability of the manifest allows: "+strings.Join(slices.Compact(missing), ", "),
			"the host answers DENIED: add them to the capabilities of the manifest")
	case len(needs) == 0:
		e.ok("rights", "makes no request that needs a capability, for the given objects")
	default:
		e.ok("rights", "the manifest requests all used rights")
	}
}

// String returns "patch of Deployment.apps/status".
func (n need) String() string {
	s := n.verb + " of " + n.kind
	if n.group != "" {
		s += "." + n.group
	}
	if n.subresource != "" {
		s += "/" + n.subresource
	}
	return s
}

// allowed follows section 8 of ABI.md, as far as possible without a cluster.
func allowed(m *abi.Manifest, n need) bool {
	if m.For != nil && m.For.Group == n.group && m.For.Kind == n.kind {
		own := []string{"get", "list", "watch"}
		if n.subresource == "status" {
			own = []string{"get", "update", "patch"}
		}
		if (n.subresource == "" || n.subresource == "status") && slices.Contains(own, n.verb) {
			return true
		}
	}
	return slices.ContainsFunc(m.Capabilities, func(c abi.Capability) bool {
		verb := slices.Contains(c.Verbs, n.verb) || slices.Contains(c.Verbs, "*")
		sub := n.subresource == "" && len(c.Subresources) == 0 || slices.Contains(c.Subresources, n.subresource)
		return verb && sub && c.Group == n.group && c.Resource == kinds.Plural(n.kind)
	})
}

// kindsText lists the kinds of watches.
func kindsText(watches []abi.Watch) string {
	var names []string
	for _, w := range watches {
		names = append(names, w.Kind)
	}
	return strings.Join(names, ", ")
}
