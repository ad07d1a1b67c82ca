// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiv1 "k8s.io/api/coordination/v1"
)

// Claims are the objects that a replica runs.
type Claims struct {
	// Group is the name of the group of the replica. Derived reports whether that comes from the name of a module.
	Group   string `json:"group"`
	Derived bool   `json:"derived,omitempty"`
	// By is the holder of the Lease that wrote the claims; the claims of another holder are outdated. If empty, the holder writes them with
	// each renewal.
	By     string  `json:"by,omitempty"`
	Claims []Claim `json:"claims"`
}

// Claim describes the objects of a controller.
type Claim struct {
	Controller string   `json:"controller"`
	Kind       string   `json:"kind"` // with its group, in any version
	Namespaces []string `json:"namespaces,omitempty"`
	Labels     string   `json:"labels,omitempty"` // selectors; empty for all objects
	Fields     string   `json:"fields,omitempty"`
	// Pending reports whether the controller runs nothing yet, because the replica is still looking for rivals.
	Pending bool `json:"pending,omitempty"`
}

// overlaps reports whether two claims can have common objects. Different selectors are taken to be disjoint.
func (c *Claim) overlaps(o *Claim) bool {
	either := func(a, b string) bool { return a == b || a == "" || b == "" }
	return c.Kind == o.Kind && either(c.Labels, o.Labels) && either(c.Fields, o.Fields) &&
		(len(c.Namespaces) == 0 || len(o.Namespaces) == 0 || slices.ContainsFunc(c.Namespaces, func(ns string) bool { return slices.Contains(o.Namespaces, ns) }))
}

// String describes the claimed objects for people.
func (c *Claim) String() string {
	in := "all namespaces"
	if len(c.Namespaces) > 0 {
		in = strings.Join(c.Namespaces, ", ")
	}
	return c.Kind + " in " + in
}

// survey observes the Leases of other groups, by the local clock alone. The zero value has seen none.
type survey struct {
	leases map[string]*observed // by name
}

type observed struct {
	version string
	since   time.Time // when the Lease was last seen to change
	alive   bool      // it has changed since it was first seen
}

// see returns what is known about a Lease.
func (s *survey) see(now time.Time, lease *apiv1.Lease) *observed {
	o := s.leases[lease.Name]
	switch {
	case o == nil:
		if s.leases == nil {
			s.leases = map[string]*observed{}
		}
		o = &observed{version: lease.ResourceVersion, since: now}
		s.leases[lease.Name] = o
	case o.version != lease.ResourceVersion:
		*o = observed{lease.ResourceVersion, now, true}
	}
	return o
}

// judge decides whether this replica may run the objects of its claim c. rival describes a group that runs them; wait means that this is not
// decided yet.
//
// Two groups conflict if both run a controller of the same name on the same objects, or if the user has chosen neither of their names. Each
// publishes a pending claim before it looks for those of others, so that of two that start at once at least one sees the other. A group
// that finds a claim that is not pending stops; of two pending ones, the one with the greater name stops, and the other waits for that. A
// group that ran before, and could not renew its Lease in time, waits until a pending one has stopped or started.
func (s *survey) judge(now time.Time, mine *Registrar, c Claim, leases []apiv1.Lease) (rival string, wait bool) {
	published := false
	for i := range leases {
		lease := &leases[i]
		theirs, ok := claimsOf(lease)
		switch {
		case !ok:
			continue
		case theirs.Group == mine.Group:
			published = published || slices.ContainsFunc(theirs.Claims, func(o Claim) bool { return o.Controller == c.Controller })
			continue
		}
		at := slices.IndexFunc(theirs.Claims, func(o Claim) bool {
			return o.overlaps(&c) && (o.Controller == c.Controller || mine.Derived && theirs.Derived)
		})
		if at < 0 {
			continue
		}
		lasts := mine.Lease
		if d := lease.Spec.LeaseDurationSeconds; d != nil {
			lasts = max(lasts, time.Duration(*d)*time.Second)
		}
		other := &theirs.Claims[at]
		switch seen := s.see(now, lease); {
		case now.Sub(seen.since) >= lasts: // its replica is dead
		case !seen.alive, other.Pending && (!c.Pending || mine.Group < theirs.Group):
			wait = true
		default:
			return fmt.Sprintf("group[%s] runs %s, as controller[%s]: if it is the same controller, start this one with --leader-elect-resource-name %[1]s; "+
				"if it is another one, with a --name and a --leader-elect-resource-name of its own", theirs.Group, other, other.Controller), false
		}
	}
	return "", wait || !published
}

// claimsOf returns the claims of the holder of a Lease.
func claimsOf(lease *apiv1.Lease) (c Claims, ok bool) {
	text := lease.Annotations[ClaimsAnnotation]
	if text == "" || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || json.Unmarshal([]byte(text), &c) != nil {
		return c, false
	}
	return c, c.By == "" || c.By == *lease.Spec.HolderIdentity
}
