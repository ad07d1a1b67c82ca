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
	n := need{verb: verbs[op], kind: r.Kind, subresource: r.Subresource}
	version := r.APIVersion
	if n.kind == "" {
		if o, err := abi.DecodeObject(r.Object); err == nil {
			n.kind, _ = o["kind"].(string)
			version, _ = o["apiVersion"].(string)
		}
	}
	n.group = groupOf(version)
	return n
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
		child, err := abi.DecodeObject(b)
		if err != nil {
			continue // checkChildren has said so
		}
		kind, _ := child["kind"].(string)
		version, _ := child["apiVersion"].(string)
		out = append(out, need{verb: "create", group: groupOf(version), kind: kind}, need{verb: "patch", group: groupOf(version), kind: kind})
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
		e.add("rights", Warn, "no capability of the manifest seems to allow: "+strings.Join(slices.Compact(missing), ", "),
			"it would be DENIED: add them to the capabilities of the manifest")
	case len(needs) == 0:
		e.ok("rights", "asks for nothing that needs a capability, for the objects that it was given")
	default:
		e.ok("rights", "the manifest asks for all that it used")
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

// eventNeeds are those of event_record.
func eventNeeds() []need {
	return []need{{verb: "create", group: "events.k8s.io", kind: "Event"}, {verb: "patch", group: "events.k8s.io", kind: "Event"}}
}

// kindsText names the kinds of watches.
func kindsText(watches []abi.Watch) string {
	var names []string
	for _, w := range watches {
		names = append(names, w.Kind)
	}
	return strings.Join(names, ", ")
}
