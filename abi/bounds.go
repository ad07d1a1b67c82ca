package abi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bound is how long a list, a map or a text of a manifest may be. A manifest is
// read before anything bounds the module: what is longer is refused before it is
// built.
type Bound struct {
	// Name is the path of keys, "capabilities.names", without indexes.
	Name string
	Max  int
}

// Bounds of what a module says of itself, beside ManifestBounds.
const (
	// MaxWatches is how many kinds a manifest may own and watch together: each is
	// a connection to the API server, and a cache.
	MaxWatches = 50
	// MaxRights is how many single rights the capabilities of a manifest may name
	// together: a verb on one namespace, name and subresource each.
	MaxRights = 5_000
	// MaxFields is how many patterns of fields all capabilities of a manifest may
	// have together, MaxFieldText how long each may be, in bytes.
	MaxFields    = 500
	MaxFieldText = 512
	// MaxText is how long other texts may be, and MaxSetting a value of config, in
	// bytes.
	MaxText    = 4 << 10
	MaxSetting = 64 << 10
	// MaxFiles is how long the section of files may be, in bytes.
	MaxFiles = 1 << 20
	// MaxConcurrency is the largest concurrency of a manifest. An operator may
	// choose a higher one.
	MaxConcurrency = 64
)

// ManifestBounds has each list and map of a manifest.
var ManifestBounds = []Bound{
	{"owns", MaxWatches},
	{"watches", MaxWatches},
	{"for.namespaces", maxList},
	{"owns.namespaces", maxList},
	{"watches.namespaces", maxList},
	{"for.predicates", maxWords},
	{"owns.predicates", maxWords},
	{"watches.predicates", maxWords},
	{"capabilities", 500}, // an operator has three for each of its kinds, and each kind that it makes
	{"capabilities.subresources", maxWords},
	{"capabilities.verbs", maxWords},
	{"capabilities.namespaces", maxList},
	{"capabilities.names", maxList},
	{"capabilities.fields", 100},
	{"config", 500},
	{"requires", 100},
	{"wants", 100},
	{"hooks", 100},
}

const (
	maxList  = 200 // of namespaces or names
	maxWords = 20  // of a list of few words
	maxKeys  = 100 // of a map, known or not
	maxKey   = 253 // bytes of a key
)

// BoundOf returns the bound of a list of a manifest, 0 where there is none of
// this name.
func BoundOf(name string) int {
	for _, b := range ManifestBounds {
		if b.Name == name {
			return b.Max
		}
	}
	return 0
}

// checkBounds refuses a manifest with a longer list or text than it may have,
// from its bytes alone. Lists of unknown keys are not built, and not looked into.
func checkBounds(b []byte) error {
	if err := Check(b); err != nil { // its depth too
		return err
	}
	r := reader{b: b}
	return r.bounded("", "")
}

// bounded reads one value. name is its path of keys, where the same with indexes.
func (r *reader) bounded(name, where string) error {
	k, err := r.peek()
	switch {
	case err != nil:
		return err
	case k == kindString:
		return r.boundedText(name, where)
	case k == kindMap && (name == "" || leadsToBound(name)):
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

// leadsToBound reports whether a value is a list with a bound, or has one in it.
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

// Count returns how many single rights a capability names: a verb on one
// namespace, name and subresource each, a list that is absent counted as one.
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

// CheckLists returns what of a capability is longer than it may be, in a manifest
// as in a grant.
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

// checkTotals checks what holds for the lists of a manifest together.
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
