// Package memo remembers runs that would change nothing a second time, by what they read: module,
// settings, object, the children of the object, answers of the cache, and what it has
// applied. A run that would read all that again, and find that applied, is skipped.
// That is right for modules whose runs depend on nothing else, which the user has to
// say.
//
// Objects and answers are remembered as digests. Requests to the cache are kept, and
// are asked again before a run is skipped.
package memo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"log/slog"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// Bounds of a Memo. Beyond maxBytes some object is forgotten for each new one.
const (
	maxBytes = 64 << 20
	maxReads = 16 << 10 // bytes of the requests of one run, with the digests
	saveTime = time.Minute
)

// entrySize is what an entry takes beside its strings, its place in the map included.
const entrySize = 220

// Config says what a Memo remembers by. Subject, Children, Answer and Version are needed.
type Config struct {
	// Subject returns what would run an object; false: its runs are not remembered.
	Subject func(abi.Key) (Subject, bool)
	// Children yields uid and resourceVersion of the objects that one controls, as
	// far as they are watched, always in the same order.
	Children func(owner abi.Key, uid string, yield func(uid, resourceVersion string))
	// Answer answers an operation of the cache as a run of that revision would be
	// answered now.
	Answer func(ctx context.Context, revision uint64, op abi.Op, req []byte) abi.Response
	// Version returns the resourceVersion of the object of a write, as it is in the
	// cache; "" where it is not there. It is applier.Cache's.
	Version func(w *abi.Write) (resourceVersion string, watched bool)
	// Path is the file that keeps what is remembered; empty: nothing is kept. Key
	// authenticates it.
	Path string
	Key  []byte
	// Logger gets a warning of a file that cannot be used; nil drops that.
	Logger *slog.Logger
}

// Subject is what runs an object: the code and settings of a module.
type Subject struct {
	// Revision and Settings are their numbers in this process, Digest is that of
	// both.
	Revision uint64
	Settings int64
	Digest   [sha256.Size]byte
}

// Memo is the memory of one controller. It implements applier.Memo.
type Memo struct {
	cfg    Config
	load   sync.Once
	counts [len(results)]atomic.Uint64

	mu      sync.Mutex
	entries map[abi.Key]entry // guarded by mu
	bytes   int               // of entries; guarded by mu
	forgot  uint64            // counts calls of Renew; guarded by mu
	changed bool              // since it was saved; guarded by mu
}

// digest is the beginning of a SHA-256.
type digest [16]byte

// entry is a run that is remembered. It does not change.
type entry struct {
	version uint64 // of the object: a quick look at what has changed
	input   digest // of subject, object and children
	reads   string // requests and answers: see reads.go
	// due is when the run is to be again, in nanoseconds of Unix time, after is for
	// how long that was; 0: it waits for a change.
	due   int64
	after time.Duration
	// place is where the object was when input was last compared; of this process.
	place place
}

// place names the bytes of an object in memory, and what else input is made of. The
// bytes of an object never change, so the same place, in the same version, has the
// same content; if the memory was given back and reused for another state, that has
// another version. The address is no pointer: it is compared, and keeps nothing.
type place struct {
	at       uintptr
	size     int
	revision uint64
	settings int64
	children digest
}

func placeOf(subject *Subject, children digest, object []byte) place {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(object)))
	return place{at, len(object), subject.Revision, subject.Settings, children}
}

func (e *entry) size(key abi.Key) int {
	return entrySize + len(key.Namespace) + len(key.Name) + len(e.reads)
}

// New returns a Memo that remembers nothing but what its file has.
func New(cfg Config) *Memo {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Memo{cfg: cfg, entries: map[abi.Key]entry{}}
}

// Recall implements applier.Memo.
func (m *Memo) Recall(ctx context.Context, s *applier.Seen, now time.Time) (abi.Action, bool) {
	m.load.Do(m.read) // not before: another replica may have led until now
	m.mu.Lock()
	e, known := m.entries[s.Key]
	m.mu.Unlock()
	if !known || e.version != versionOf(s) || e.due != 0 && now.UnixNano() >= e.due {
		return abi.Action{}, false
	}
	subject, ok := m.cfg.Subject(s.Key)
	if !ok || !m.sameInput(s, &subject, e) || !m.sameReads(ctx, &subject, e.reads) {
		return abi.Action{}, false
	}
	m.counts[Skipped].Add(1)
	if e.due == 0 {
		return abi.Action{}, true
	}
	// The clock of the system may have been set back.
	return abi.Action{Requeue: true, After: min(time.Duration(e.due-now.UnixNano()), e.after)}, true
}

// sameInput reports whether a run would begin with the same.
func (m *Memo) sameInput(s *applier.Seen, subject *Subject, e entry) bool {
	children := m.childrenOf(s)
	here := placeOf(subject, children, s.Object)
	switch {
	case e.place == here:
		return true
	case e.input != inputOf(subject, children, s.Object):
		return false
	}
	e.place = here
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.entries[s.Key]; ok && now.input == e.input { // only Renew and the bound may have removed it
		m.entries[s.Key] = e
	}
	return true
}

// Begin implements applier.Memo.
func (m *Memo) Begin(s *applier.Seen) applier.Reading {
	m.load.Do(m.read)
	subject, ok := m.cfg.Subject(s.Key)
	r := &reading{m: m, seen: s, subject: subject, known: ok}
	if ok { // before the run, whose result is compared with the children of then
		r.children = m.childrenOf(s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.forgot = m.forgot
	m.remove(s.Key)
	return r
}

// Forget implements applier.Memo.
func (m *Memo) Forget(key abi.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

// Renew forgets the objects, or all where there are none, and the runs that are under
// way: whatever asks for a run now gets one.
func (m *Memo) Renew(objects []abi.Key) {
	m.load.Do(m.read)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgot++
	for _, key := range objects {
		m.remove(key)
	}
	if len(objects) == 0 {
		m.changed = m.changed || len(m.entries) > 0
		clear(m.entries)
		m.bytes = 0
	}
}

// Len returns how many runs are remembered.
func (m *Memo) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// keep remembers a run, unless something was renewed since it began.
func (m *Memo) keep(key abi.Key, e entry, forgot uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if forgot != m.forgot {
		return false
	}
	m.remove(key)
	for other := range m.entries { // in no order: any of them will do
		if m.bytes+e.size(key) <= maxBytes {
			break
		}
		m.remove(other)
	}
	m.put(key, e)
	return true
}

// put adds an entry. The caller holds mu.
func (m *Memo) put(key abi.Key, e entry) {
	m.entries[key] = e
	m.bytes += e.size(key)
	m.changed = true
}

// remove drops an entry. The caller holds mu.
func (m *Memo) remove(key abi.Key) {
	if e, ok := m.entries[key]; ok {
		m.bytes -= e.size(key)
		delete(m.entries, key)
		m.changed = true
	}
}

// snapshot returns what is to be saved; false where that is saved already.
func (m *Memo) snapshot() (map[abi.Key]entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.changed {
		return nil, false
	}
	m.changed = false
	return maps.Clone(m.entries), true
}

// childrenOf is the digest of the children of an object.
func (m *Memo) childrenOf(s *applier.Seen) (d digest) {
	var h hash.Hash
	m.cfg.Children(s.Key, s.UID, func(uid, resourceVersion string) {
		if h == nil {
			h = sha256.New()
		}
		for _, part := range [...]string{uid, resourceVersion} {
			var size [4]byte
			binary.BigEndian.PutUint32(size[:], uint32(min(len(part), math.MaxInt32))) //nolint:gosec // bounded
			h.Write(size[:])
			h.Write([]byte(part))
		}
	})
	if h != nil {
		copy(d[:], h.Sum(nil))
	}
	return d
}

// inputOf is the digest of what a run begins with.
func inputOf(subject *Subject, children digest, object []byte) (d digest) {
	h := sha256.New()
	h.Write(subject.Digest[:])
	h.Write(children[:])
	h.Write(object)
	var sum [sha256.Size]byte
	copy(d[:], h.Sum(sum[:0]))
	return d
}

// versionOf is a short hash (FNV-1a) of which object it is, and in which version. It
// only saves the digest where that has changed.
func versionOf(s *applier.Seen) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range [...]string{s.UID, s.ResourceVersion} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h
}
