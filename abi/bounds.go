// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bound is the maximum length of a list, a map or a text of a manifest. A manifest is read before any other limit applies to the module, so
// one that is too long is rejected before it is decoded.
type Bound struct {
	// Name is the path of keys without indexes, such as "capabilities.names".
	Name string
	Max  int
}

// Bounds of a manifest, in addition to ManifestBounds.
const (
	// MaxWatches is the maximum number of kinds that a manifest may own and watch together: each needs a connection to the API server, and
	// a cache.
	MaxWatches = 50
	// MaxRights is the maximum number of individual rights in all capabilities of a manifest: a verb on one namespace, name and subresource
	// each.
	MaxRights = 5_000
	// MaxFields is the maximum number of field patterns in all capabilities of a manifest; MaxFieldText is the maximum length of each, in
	// bytes.
	MaxFields    = 500
	MaxFieldText = 512
	// MaxText is the maximum length of other texts, and MaxSetting that of a value of config, in bytes.
	MaxText    = 4 << 10
	MaxSetting = 64 << 10
	// MaxFiles is the maximum length of the section of files, in bytes.
	MaxFiles = 1 << 20
	// MaxConcurrency is the highest concurrency that a manifest can request. An operator may choose a higher one.
	MaxConcurrency = 64
)

// ManifestBounds lists the bounds of all lists and maps of a manifest.
var ManifestBounds = []Bound{
	{"owns", MaxWatches},
	{"watches", MaxWatches},
	{"for.namespaces", maxList},
	{"owns.namespaces", maxList},
	{"watches.namespaces", maxList},
	{"for.predicates", maxWords},
	{"owns.predicates", maxWords},
	{"watches.predicates", maxWords},
	{"capabilities", 500}, // an operator has three per kind that it reconciles, and one per kind that it creates
	{"capabilities.subresources", maxWords},
	{"capabilities.verbs", maxWords},
	{"capabilities.namespaces", maxList},
	{"capabilities.names", maxList},
	{"capabilities.fields", 100},
	{"webhooks", 100},
	{"webhooks.rules", maxWords},
	{"webhooks.rules.apiGroups", maxWords},
	{"webhooks.rules.apiVersions", maxWords},
	{"webhooks.rules.resources", maxWords},
	{"webhooks.rules.operations", maxWords},
	{"webhooks.matchConditions", 64}, // as in Kubernetes
	{"conversions", 100},
	{"conversions.versions", maxWords},
	{"config", 500},
	{"requires", 100},
	{"wants", 100},
	{"hooks", 100},
}

const (
	maxList  = 200 // of namespaces or names
	maxWords = 20  // of a list with few possible words
	maxKeys  = 100 // of a map, whether known or not
	maxKey   = 253 // bytes of a key
)

// BoundOf returns the bound of a list of a manifest, or 0 if there is no bound of this name.
func BoundOf(name string) int {
	for _, b := range ManifestBounds {
		if b.Name == name {
			return b.Max
		}
	}
	return 0
}

// checkBounds rejects a manifest with a list or text that is too long, or with a fixed limit, from its bytes alone. Lists of unknown keys are skipped, because
// they are never decoded.
func checkBounds(b []byte) error {
	if err := Check(b); err != nil { // includes the depth
		return err
	}
	r := reader{b: b}
	return r.bounded("", "")
}

// bounded reads one value. name is its path of keys, and where the same with indexes.
func (r *reader) bounded(name, where string) error {
	k, err := r.peek()
	switch {
	case err != nil:
		return err
	case k == kindString:
		return r.boundedText(name, where)
	case k == kindMap && (name == "" || name == "limits" || leadsToBound(name)):
		return r.boundedMap(name, where)
	case k == kindArray && leadsToBound(name):
		return r.boundedList(name, where)
	}
	return r.skip(1)
}

func (r *reader) boundedMap(name, where string) error {
	n, err := r.mapLen()
	bound := maxKeys
	if name == "config" {
		bound = BoundOf(name)
	}
	if err == nil && n > bound {
		return tooMany(where, n, bound)
	}
	for i := 0; i < n && err == nil; i++ {
		var key []byte
		if key, err = r.str(); err == nil && len(key) > maxKey {
			err = fmt.Errorf("%s: a key is %d bytes long, the limit is %d", where, len(key), maxKey)
		}
		if err == nil && name == "limits" && slices.Contains(FixedLimits, LimitName(key)) {
			err = fmt.Errorf("limits.%s: %s", key, FixedText)
		}
		if err == nil {
			err = r.bounded(join(name, string(key)), join(where, string(key)))
		}
	}
	return err
}

func (r *reader) boundedList(name, where string) error {
	n, err := r.arrayLen()
	if bound := BoundOf(name); err == nil && bound > 0 && n > bound {
		return tooMany(where, n, bound)
	}
	for i := 0; i < n && err == nil; i++ {
		err = r.bounded(name, fmt.Sprintf("%s[%d]", where, i))
	}
	return err
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// leadsToBound reports whether a value is a list with a bound, or contains one.
func leadsToBound(name string) bool {
	return slices.ContainsFunc(ManifestBounds, func(b Bound) bool { return b.Name == name || strings.HasPrefix(b.Name, name+".") })
}

func (r *reader) boundedText(name, where string) error {
	most := MaxText
	if strings.HasPrefix(name, "config.") {
		most = MaxSetting
	}
	s, err := r.str()
	if err == nil && len(s) > most {
		return fmt.Errorf("%s: is %d bytes long, the limit is %d", where, len(s), most)
	}
	return err
}

func tooMany(where string, n, most int) error {
	if where == "" {
		return fmt.Errorf("has %d keys, the limit is %d", n, most)
	}
	return fmt.Errorf("%s: has %d entries, the limit is %d", where, n, most)
}

// Count returns the number of individual rights of a capability: a verb on one namespace, name and subresource each. An absent list counts
// as one.
func (c *Capability) Count() int {
	n := max(1, len(c.Verbs))
	if slices.Contains(c.Verbs, "*") {
		n = 7
	}
	for _, list := range [][]string{c.Subresources, c.Namespaces, c.Names} {
		n *= max(1, len(list)) // each list is bounded: no overflow
	}
	return n
}

// CheckLists returns an error for each list of a capability that is too long, in a manifest or in a grant.
func (c *Capability) CheckLists() error {
	var errs []error
	for _, list := range []struct {
		key  string
		list []string
	}{{"subresources", c.Subresources}, {"verbs", c.Verbs}, {"namespaces", c.Namespaces}, {"names", c.Names}, {"fields", c.Fields}} {
		if most := BoundOf("capabilities." + list.key); len(list.list) > most {
			errs = append(errs, fmt.Errorf("%w; split the rule", tooMany(list.key, len(list.list), most)))
		}
	}
	for _, f := range c.Fields {
		if len(f) > MaxFieldText {
			errs = append(errs, fmt.Errorf("fields: a pattern is %d bytes long, the limit is %d", len(f), MaxFieldText))
			break
		}
	}
	return errors.Join(errs...)
}

// checkTotals checks the bounds that apply to several lists of a manifest together.
func (m *Manifest) checkTotals() error {
	var errs []error
	if n := len(m.Owns) + len(m.Watches); n > MaxWatches {
		errs = append(errs, fmt.Errorf("owns and watches: have %d entries together, the limit is %d", n, MaxWatches))
	}
	if most := BoundOf("capabilities"); len(m.Capabilities) > most {
		return errors.Join(append(errs, tooMany("capabilities", len(m.Capabilities), most))...)
	}
	rights, fields := 0, 0
	for i := range m.Capabilities {
		c := &m.Capabilities[i]
		if err := c.CheckLists(); err != nil {
			return errors.Join(append(errs, fmt.Errorf("capabilities[%d]: %w", i, err))...)
		}
		rights, fields = rights+c.Count(), fields+len(c.Fields)
	}
	if rights > MaxRights {
		errs = append(errs, fmt.Errorf("capabilities: name %d rights together, the limit is %d; each verb counts for each namespace, name and subresource",
			rights, MaxRights))
	}
	if fields > MaxFields {
		errs = append(errs, fmt.Errorf("capabilities: have %d fields together, the limit is %d", fields, MaxFields))
	}
	return errors.Join(errs...)
}
