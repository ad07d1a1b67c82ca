package validate

import (
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// need is a right that an operation or a result wants.
type need struct {
	verb, group, kind, subresource string
}

// verbs are what the operations need.
var verbs = map[abi.Op]string{
	abi.OpAPIGet: "get", abi.OpCacheGet: "get", abi.OpAPIList: "list", abi.OpCacheList: "list", abi.OpAPICreate: "create",
	abi.OpAPIUpdate: "update", abi.OpAPIPatch: "patch", abi.OpAPIApply: "patch", abi.OpAPIDelete: "delete",
}

// needOf is what an operation with this request needs. The object that is written
// names its kind where the request does not.
func needOf(op abi.Op, r *abi.APIRequest) need {
	group, kind := groupOf(r.APIVersion), r.Kind
	if kind == "" {
		group, kind = kindOf(r.Object)
	}
	return need{verbs[op], group, kind, r.Subresource}
}

// kindOf returns the kind of an object, which is empty where it cannot be read.
func kindOf(object []byte) (group, kind string) {
	o, _ := abi.DecodeObject(object)
	version, _ := o["apiVersion"].(string)
	kind, _ = o["kind"].(string)
	return groupOf(version), kind
}

// groupOf is the group of an apiVersion, empty for the core kinds.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// declaredNeeds are those of what a result declares.
func declaredNeeds(d *abi.Declared) []need {
	if d == nil {
		return nil
	}
	var out []need
	for _, b := range d.Apply {
		if group, kind := kindOf(b); kind != "" { // else checkChildren has said so
			out = append(out, need{verb: "create", group: group, kind: kind}, need{verb: "patch", group: group, kind: kind})
		}
	}
	return out
}

// rights compares what the runs have asked for with what the manifest asks for.
// Which resource a kind has only a cluster knows: here it is guessed from its
// name, so that what is missing is a warning.
func (e *exam) rights() {
	m := e.module.Manifest()
	if m.For == nil && len(m.Capabilities) == 0 {
		return // it has no manifest, and manifest has said so
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

// allowed follows section 8 of ABI.md, as far as that goes without a cluster.
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
		return verb && sub && c.Group == n.group && isPlural(c.Resource, n.kind)
	})
}

// isPlural reports whether a resource can be that of a kind, by its name.
func isPlural(resource, kind string) bool {
	k := strings.ToLower(kind)
	return resource == k || resource == k+"s" || resource == k+"es" || resource == strings.TrimSuffix(k, "y")+"ies"
}

// kindsText names the kinds of watches.
func kindsText(watches []abi.Watch) string {
	var names []string
	for _, w := range watches {
		names = append(names, w.Kind)
	}
	return strings.Join(names, ", ")
}
