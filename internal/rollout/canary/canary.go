// Package canary says which objects a new revision of a module runs while it
// runs as a canary on some of them: a share by the hash of the uid, those of
// some namespaces, those that a label selector matches, or all three at once.
// It is pure.
//
//	cfg, err := canary.Parse("10%", []string{"shop"}, "tier=web")
//	sides := canary.New(cfg, digest, objects)
//	sides.Canary(object)             // the same answer until Forget
package canary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
)

// Config says which objects are the canary's: those that everything matches
// that is given.
type Config struct {
	// Share is how many of the objects, 0 to 1; 0 is all that the rest matches.
	Share float64
	// Namespaces are those of the objects; none is all.
	Namespaces []string
	// Selector matches their labels; nil is all.
	Selector labels.Selector
}

// Parse reads a share ("10%", "0.5%"), namespaces and a label selector, each of
// which may be empty. The zero Config is that of three empty ones.
func Parse(share string, namespaces []string, selector string) (Config, error) {
	c := Config{Namespaces: namespaces}
	if share != "" {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
		if err != nil || !strings.HasSuffix(share, "%") || !(percent > 0 && percent <= 100) {
			return Config{}, fmt.Errorf("share %q: want more than 0%% and at most 100%%, such as 10%%", share)
		}
		c.Share = percent / 100
	}
	if slices.Contains(namespaces, "") {
		return Config{}, errors.New("namespaces: a namespace is empty")
	}
	if selector != "" {
		s, err := labels.Parse(selector)
		if err != nil {
			return Config{}, fmt.Errorf("selector %q: %w", selector, err)
		}
		c.Selector = s
	}
	return c, nil
}

// Enabled reports whether the config says anything: the zero Config does not.
func (c Config) Enabled() bool { return c.Share > 0 || len(c.Namespaces) > 0 || c.Selector != nil }

// String returns the config for people: "10% of the objects in namespace shop
// with tier=web".
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

// Object is what the sides are notified of an object.
type Object struct {
	Key abi.Key
	// UID is empty where the object is gone.
	UID    string
	Labels labels.Labels
}

// eligible reports whether an object is one of those that the share is taken of.
func (c Config) eligible(o *Object) bool {
	return (len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, o.Key.Namespace)) &&
		(c.Selector == nil || c.Selector.Matches(o.Labels))
}

// limit returns the position below which an object is the canary's, so that these
// are the share of the objects that there are, and at least one.
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

// position is where an object stands, in [0, 1), evenly spread over uids. The salt
// makes those of two modules others, so that it is not always the same objects
// that try what is new.
func position(salt, uid string) float64 {
	h := fnv.New128a()
	_, _ = h.Write([]byte(salt)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(uid))
	sum := h.Sum(nil)
	// FNV mixes its last bytes into the low half well, and hardly into the high one.
	x := binary.BigEndian.Uint64(sum[8:])
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return float64((x^x>>29)>>11) / (1 << 53)
}

// Assignment knows on which side each object is. An object stays with its side until
// it is gone, whatever becomes of its labels. It is safe for concurrent use.
type Assignment struct {
	cfg   Config
	salt  string
	limit float64

	mu sync.Mutex
	of map[abi.Key]assigned // guarded by mu
}

type assigned struct {
	uid    uint64 // a hash of it
	canary bool
}

// New returns the sides of a canary. The salt is the digest of its module. The
// share is that of the objects that there are: they are ranked, and the first ones
// are the canary's. Objects that come later are where they would have been.
func New(cfg Config, salt string, objects []Object) *Assignment {
	s := &Assignment{cfg: cfg, salt: salt, limit: cfg.limit(objects, salt), of: map[abi.Key]assigned{}}
	for i := range objects {
		s.Canary(&objects[i])
	}
	return s
}

// Count returns how many objects the canary has, of how many.
func (s *Assignment) Count() (canary, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.of {
		if a.canary {
			canary++
		}
	}
	return canary, len(s.of)
}

// Config returns what decides.
func (s *Assignment) Config() Config { return s.cfg }

// Canary reports whether an object is the canary's. It is decided when the
// object is first asked for; a new uid is a new object. One that is gone is on
// the side on which it was, and else not the canary's.
func (s *Assignment) Canary(o *Object) bool {
	var uid uint64
	if o.UID != "" {
		uid = math.Float64bits(position("", o.UID))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.of[o.Key]
	if o.UID == "" {
		return known.canary
	}
	if ok && known.uid == uid {
		return known.canary
	}
	known = assigned{uid, s.cfg.eligible(o) && position(s.salt, o.UID) < s.limit}
	s.of[o.Key] = known
	return known.canary
}

// Forget drops an object that is gone.
func (s *Assignment) Forget(key abi.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}
