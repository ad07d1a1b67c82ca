// SPDX-License-Identifier: Apache-2.0

// Package grant determines the rights that a module needs, reads the grants of an operator, and
// writes the RBAC objects that give an identity exactly these rights. It is pure, without requests.
package grant

import (
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Watch is a watch of a kind for a module.
type Watch struct {
	Kind kinds.Kind
	// If Namespaces is empty, all are watched. It is also empty for a cluster-scoped kind.
	Namespaces []string
	// Name is the only name that the watch's field selector matches. If empty, any name matches.
	Name string
	// Seen means that the module sees the objects: it may read the cache, or has a map or a filter.
	// Then a watch also needs the right to get them.
	Seen bool
}

// Needs are the rights that a module needs.
type Needs struct {
	// For is the reconciled kind, and Watches are the owned or watched ones.
	For     Watch
	Watches []Watch
	// Finalizer means that the module has a finalizer, which the host adds and removes.
	Finalizer bool
	// Capabilities are the capabilities of the manifest.
	Capabilities []abi.Capability
	// Webhooks are the rights of its webhooks and conversions. The API server knows nothing of them.
	Webhooks []abi.Capability
}

// Rules returns the rules that a grant must have so that nothing of the module is refused: its
// watches, its finalizer, its rights on the reconciled kind, its capabilities, and its webhooks.
func (n *Needs) Rules() []abi.Capability {
	rules := OwnRights(n.For)
	for i := range n.Watches {
		rules = append(rules, n.Watches[i].Rule())
	}
	return slices.Concat(rules, n.FinalizerRules(), n.Capabilities, n.Webhooks)
}

// AccessRules returns the rules that the API server must allow: Rules without those for which no
// request is sent. canCall reports whether the module can call an operation at all. Declared results
// apply and prune with the module's capabilities, and apply the status. The host itself reads the
// reconciled object if it has changed before its status is written.
func (n *Needs) AccessRules(canCall func(abi.Op) bool) []abi.Capability {
	read, status := n.For, n.For.rule(kubeapi.VerbPatch)
	read.Seen = true
	status.Subresources = []string{"status"}
	if canCall(abi.OpAPIGet) {
		status.Verbs = append(status.Verbs, kubeapi.VerbGet)
	}
	if canCall(abi.OpAPIUpdate) {
		status.Verbs = append(status.Verbs, kubeapi.VerbUpdate)
	}
	if slices.ContainsFunc([]abi.Op{abi.OpAPIUpdate, abi.OpAPIPatch, abi.OpAPIApply}, canCall) || n.For.Kind.BuiltIn() {
		status.Fields = []string{"status"} // the current status is compared with the written one
	}
	rules := []abi.Capability{read.Rule(), status}
	for _, w := range n.Watches {
		w.Seen = false // the host only lists and watches, and passes the objects on
		rules = append(rules, w.Rule())
	}
	return append(append(rules, n.FinalizerRules()...), n.Capabilities...)
}

// OwnerRules returns the right that the admission plugin OwnerReferencesPermissionEnforcement checks
// when an object gets an owner whose deletion it blocks: update on the subresource finalizers of the
// owner. No request is ever sent for it, so neither a manifest nor a grant names it. A module needs it
// if it can write objects other than events, and other than the one that it reconciles.
func (n *Needs) OwnerRules() []abi.Capability {
	if !slices.ContainsFunc(n.Capabilities, n.writesOthers) {
		return nil
	}
	owner := n.For.rule(kubeapi.VerbUpdate)
	owner.Subresources = []string{"finalizers"}
	return []abi.Capability{owner}
}

// writesOthers reports whether a capability permits writes of objects, of which the reconciled object
// can be the owner.
func (n *Needs) writesOthers(c abi.Capability) bool {
	itself := c.Group == n.For.Kind.Group && c.Resource == n.For.Kind.Resource
	return len(c.Subresources) == 0 && c.Resource != "events" && slices.ContainsFunc(kubeapi.SpellOut(c.Verbs), func(verb string) bool {
		return verb == kubeapi.VerbCreate || !itself && compares(verb)
	})
}

// FinalizerRules returns the rights for the module's finalizer, if it has one.
func (n *Needs) FinalizerRules() []abi.Capability {
	if !n.Finalizer {
		return nil
	}
	return []abi.Capability{n.For.finalizer()}
}

// OwnFinalizer reports whether a finalizer is the module's own. The right to the finalizers of its
// objects includes it. Its domain is the API group of the reconciled kind, or below it, as in
// GROUP/finalizer and KIND.GROUP/finalizer. The operator must grant any other finalizer by name,
// because it may belong to another controller. A finalizer without a slash has no domain.
func (n *Needs) OwnFinalizer(finalizer string) bool {
	domain, _, found := strings.Cut(finalizer, "/")
	group := n.For.Kind.Group
	return found && group != "" && (domain == group || strings.HasSuffix(domain, "."+group))
}

// OwnRights returns the rights of every module on the kind that it reconciles (abi/ABI.md, section
// 8): to read it, and to read and write its status.
func OwnRights(w Watch) []abi.Capability {
	w.Seen = true
	return []abi.Capability{w.Rule(), w.status()}
}

// Rule returns the right to watch, and also to get if the module sees the objects.
func (w *Watch) Rule() abi.Capability {
	verbs := []string{kubeapi.VerbList, kubeapi.VerbWatch}
	if w.Seen {
		verbs = append([]string{kubeapi.VerbGet}, verbs...)
	}
	return w.rule(verbs...)
}

func (w *Watch) rule(verbs ...string) abi.Capability {
	c := abi.Capability{Group: w.Kind.Group, Resource: w.Kind.Resource, Verbs: verbs}
	if w.Kind.Namespaced {
		c.Namespaces = slices.Clone(w.Namespaces)
	}
	if w.Name != "" {
		c.Names = []string{w.Name}
	}
	return c
}

func (w *Watch) status() abi.Capability {
	c := w.rule(kubeapi.VerbGet, kubeapi.VerbUpdate, kubeapi.VerbPatch)
	c.Subresources, c.Fields = []string{"status"}, []string{"status"}
	return c
}

// finalizer returns the right to add and remove a finalizer. The host does that itself, so the
// module needs no capability.
func (w *Watch) finalizer() abi.Capability {
	c := w.rule(kubeapi.VerbPatch)
	c.Fields = []string{"metadata.finalizers"}
	return c
}

// Narrow returns the namespaces, of those to watch, in which rules allow a watch of the kind. An
// empty list means all. ok is false if they allow it in none.
func (w *Watch) Narrow(rules []abi.Capability) (namespaces []string, ok bool) {
	p, need := kubeapi.NewPolicy(rules), w.Rule()
	if len(p.AllowedIn(&need, []string{""})) > 0 {
		return w.Namespaces, true
	}
	if !w.Kind.Namespaced {
		return nil, false
	}
	wanted := w.Namespaces
	if len(wanted) == 0 {
		for i := range rules {
			wanted = append(wanted, rules[i].Namespaces...)
		}
		slices.Sort(wanted)
		wanted = slices.Compact(wanted)
	}
	namespaces = p.AllowedIn(&need, wanted)
	return namespaces, len(namespaces) > 0
}

// Beyond returns the parts of rules that other rules do not allow: each rule with the verbs that
// are missing somewhere.
func Beyond(granted, asked []abi.Capability) []abi.Capability {
	p := kubeapi.NewPolicy(granted)
	var more []abi.Capability
	for i := range asked {
		c := asked[i]
		if isWebhook(&c) {
			if !admitted(granted, &c) {
				more = append(more, c)
			}
			continue
		}
		missing := p.Beyond(&c)
		if len(missing) == 0 {
			continue
		}
		if !slices.Contains(c.Verbs, "*") {
			c.Verbs = missing
		}
		more = append(more, c)
	}
	return more
}
