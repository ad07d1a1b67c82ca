// SPDX-License-Identifier: Apache-2.0

// Package canary selects the objects that a new revision of a module runs while it is a
// canary: a share by the hash of the uid, the objects of some namespaces, those that match
// a label selector, or a combination. It is pure.
//
//	sides := canary.New(canary.Config{Share: 0.1}, digest, objects)
//	sides.Canary(object)             // the same answer until Forget
package canary

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
)

// Config selects the objects of a canary: those that match all criteria that are set.
type Config struct {
	// Share is the share of the objects, 0 to 1; 0 selects all objects that match the other
	// criteria.
	Share float64
	// Namespaces are the namespaces of the objects; if empty, all.
	Namespaces []string
	// Selector matches the labels of the objects; if nil, all match.
	Selector labels.Selector
}

// Enabled reports whether any criterion is set.
func (c Config) Enabled() bool { return c.Share > 0 || len(c.Namespaces) > 0 || c.Selector != nil }

// String describes the config for people: "10% of the objects in namespace shop with
// tier=web".
func (c Config) String() string {
	text := "all objects"
	if c.Share > 0 {
		text = strconv.FormatFloat(100*c.Share, 'f', -1, 64) + "% of the objects"
	}
	switch len(c.Namespaces) {
	case 0:
	case 1:
		text += " in namespace " + c.Namespaces[0]
	default:
		text += " in namespaces " + strings.Join(c.Namespaces, ", ")
	}
	if c.Selector != nil {
		text += " with " + c.Selector.String()
	}
	return text
}

// Object has the properties of an object that decide its assignment.
type Object struct {
	Key abi.Key
	// UID is empty if the object is gone.
	UID    string
	Labels labels.Labels
}

// eligible reports whether an object counts for the share.
func (c Config) eligible(o *Object) bool {
	return (len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, o.Key.Namespace)) &&
		(c.Selector == nil || c.Selector.Matches(o.Labels))
}

// limit returns the position below which an object belongs to the canary, so that these are
// the share of the existing objects, and at least one.
func (c Config) limit(objects []Object, salt string) float64 {
	if c.Share == 0 {
		return 1
	}
	var positions []float64
	for i := range objects {
		if c.eligible(&objects[i]) {
			positions = append(positions, position(salt, objects[i].UID))
		}
	}
	slices.Sort(positions)
	n := len(positions)
	k := max(1, int(math.Round(c.Share*float64(n))))
	switch {
	case n == 0:
		return c.Share
	case k < n:
		return positions[k]
	}
	return max(c.Share, math.Nextafter(positions[n-1], 1))
}

// position maps uids evenly to [0, 1). The salt changes the order for each module, so that
// it is not always the same objects that try a new module first.
func position(salt, uid string) float64 {
	h := fnv.New128a()
	_, _ = h.Write([]byte(salt)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(uid))
	sum := h.Sum(nil)
	// FNV mixes its last bytes well into the low half of the sum, but hardly into the high
	// half.
	x := binary.BigEndian.Uint64(sum[8:])
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return float64((x^x>>29)>>11) / (1 << 53)
}

// Assignment assigns objects to the canary or the live revision. An object does not change
// sides while it exists, even if its labels change. It is safe for concurrent use.
type Assignment struct {
	cfg   Config
	salt  string
	limit float64

	mu sync.Mutex
	of map[abi.Key]assigned // guarded by mu
}

type assigned struct {
	uid    uint64 // a hash of the uid
	canary bool
}

// New returns the assignment of a canary. The salt is the digest of its module. The
// existing objects are ranked, and the first ones, as many as the share, are the canary's.
// Objects that appear later are assigned by the same limit.
func New(cfg Config, salt string, objects []Object) *Assignment {
	s := &Assignment{cfg: cfg, salt: salt, limit: cfg.limit(objects, salt), of: map[abi.Key]assigned{}}
	for i := range objects {
		s.Canary(&objects[i])
	}
	return s
}

// Count returns the number of objects of the canary and of all assigned objects, of those that this replica runs. An object that has
// moved to another replica stays assigned, because it may return.
func (s *Assignment) Count(here func(abi.Key) bool) (canary, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, a := range s.of {
		if !here(key) {
			continue
		}
		if all++; a.canary {
			canary++
		}
	}
	return canary, all
}

// Config returns the criteria.
func (s *Assignment) Config() Config { return s.cfg }

// Canary reports whether an object belongs to the canary. This is decided at the first call
// for the object; an object with a new uid is a new object. An object that is gone stays on
// its side; if it was never assigned, it is not the canary's.
func (s *Assignment) Canary(o *Object) bool {
	uid := hashed(o.UID)
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.of[o.Key]
	if o.UID == "" {
		return known.canary
	}
	if ok && known.uid == uid {
		return known.canary
	}
	known = assigned{uid, s.would(o)}
	s.of[o.Key] = known
	return known.canary
}

// Would reports whether a request about an object, which need not exist yet, is the canary's. It
// assigns nothing. known means that the object is of the assigned kind: then it is on the side that it
// was assigned to.
func (s *Assignment) Would(o *Object, known bool) bool {
	if known {
		s.mu.Lock()
		of, ok := s.of[o.Key]
		s.mu.Unlock()
		if ok && of.uid == hashed(o.UID) {
			return of.canary
		}
	}
	return s.would(o)
}

func (s *Assignment) would(o *Object) bool {
	return s.cfg.eligible(o) && position(s.salt, o.UID) < s.limit
}

// hashed returns a hash of a uid.
func hashed(uid string) uint64 { return math.Float64bits(position("", uid)) }

// Forget removes an object that is gone.
func (s *Assignment) Forget(key abi.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}
