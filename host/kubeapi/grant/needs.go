// Package grant says what running a module takes, reads what an operator grants
// it, and writes the RBAC objects that give an identity just that. It is pure,
// without requests.
package grant

import (
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Watch is a kind that is watched for a module.
type Watch struct {
	Kind kinds.Kind
	// Namespaces is empty for all, and for a cluster-scoped kind.
	Namespaces []string
	// Name is the one name that the watch's field selector lets through; "" is any.
	Name string
	// Seen says that the module is shown the objects: it may read the cache, or its
	// map or filter is asked. Then a watch is a right to get them too.
	Seen bool
	// Optional says that the module runs without it.
	Optional bool
}

// Needs is what running a module takes of the API.
type Needs struct {
	// For is the kind that is reconciled, Watches those that are owned or watched.
	For     Watch
	Watches []Watch
	// Finalizer says that the module has one, which the host keeps on the objects.
	Finalizer bool
	// Capabilities are those of the manifest.
	Capabilities []abi.Capability
}

// Rules returns what a grant must allow so that nothing of the module is refused:
// its watches, its finalizer, what it may do with the kind that it reconciles,
// and its capabilities.
func (n *Needs) Rules() []abi.Capability {
	rules := OwnRights(n.For)
	for i := range n.Watches {
		rules = append(rules, n.Watches[i].Rule())
	}
	return append(append(rules, n.FinalizerRules()...), n.Capabilities...)
}

// AccessRules returns what the API server must allow: Rules, but for what no
// request is sent for. CanCall says which operations the module can ask for at
// all. Declared results apply and prune under the module's capabilities, and
// apply the status.
func (n *Needs) AccessRules(canCall func(abi.Op) bool) []abi.Capability {
	read, status := n.For, n.For.rule(kubeapi.VerbPatch)
	read.Seen = canCall(abi.OpAPIGet)
	status.Subresources = []string{"status"}
	if canCall(abi.OpAPIGet) {
		status.Verbs = append(status.Verbs, kubeapi.VerbGet)
	}
	if canCall(abi.OpAPIUpdate) {
		status.Verbs = append(status.Verbs, kubeapi.VerbUpdate)
	}
	if slices.ContainsFunc([]abi.Op{abi.OpAPIUpdate, abi.OpAPIPatch, abi.OpAPIApply}, canCall) || n.For.Kind.BuiltIn() {
		status.Fields = []string{"status"} // what is there is compared with what is written
	}
	rules := []abi.Capability{read.Rule(), status}
	for _, w := range n.Watches {
		w.Seen = false // the host lists and watches, and shows what that brought
		rules = append(rules, w.Rule())
	}
	return append(append(rules, n.FinalizerRules()...), n.Capabilities...)
}

// FinalizerRules are what the module's finalizer takes, if it has one.
func (n *Needs) FinalizerRules() []abi.Capability {
	if !n.Finalizer {
		return nil
	}
	return []abi.Capability{n.For.finalizer()}
}

// OwnFinalizer reports whether a finalizer is the module's own, which the right to
// the finalizers of its objects includes: its domain is the API group of the
// reconciled kind, or below it, as in GROUP/finalizer and KIND.GROUP/finalizer. The
// operator grants another one by its name, since it may be another controller's. One
// without a slash has no domain.
func (n *Needs) OwnFinalizer(finalizer string) bool {
	domain, _, found := strings.Cut(finalizer, "/")
	group := n.For.Kind.Group
	return found && group != "" && (domain == group || strings.HasSuffix(domain, "."+group))
}

// OwnRights are those that every module has on the kind that it reconciles
// (abi/ABI.md, section 8): to read it, and to read and write its status.
func OwnRights(w Watch) []abi.Capability {
	w.Seen = true
	return []abi.Capability{w.Rule(), w.status()}
}

// Rule is the right to watch, and to get where the module sees the objects.
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

// finalizer is the right that adding and removing a finalizer takes. The host
// does that itself, so that the module needs no capability for it.
func (w *Watch) finalizer() abi.Capability {
	c := w.rule(kubeapi.VerbPatch)
	c.Fields = []string{"metadata.finalizers"}
	return c
}

// Narrow returns the namespaces in which rules let a kind be watched, of those in
// which it is to be: none for all. Ok is false where they let it be watched
// nowhere.
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

// Beyond returns what of some rules others do not allow: each with the verbs
// that are missing somewhere.
func Beyond(granted, asked []abi.Capability) []abi.Capability {
	p := kubeapi.NewPolicy(granted)
	var more []abi.Capability
	for i := range asked {
		c := asked[i]
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
