// SPDX-License-Identifier: Apache-2.0

// Package memo remembers runs that would change nothing if repeated, with everything that they read: the module, its settings, the object,
// the children of the object, responses of the cache, and the objects that were applied. A run that would read the same again, and would
// find the applied objects unchanged, is skipped. This is correct only for modules whose runs depend on nothing else, which the user must
// assert.
//
// Objects and responses are remembered as digests. Requests to the cache are stored, and repeated before a run is skipped.
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

// Bounds of a Memo. If maxBytes is reached, an arbitrary object is forgotten for each new one.
const (
	maxBytes = 64 << 20
	maxReads = 16 << 10 // total size of the requests of one run, with digests
	saveTime = time.Minute
)

// entrySize is the size of an entry without its strings, including its slot in the map.
const entrySize = 220

// Config configures a Memo. Subject, Children, Answer and Version are required.
type Config struct {
	// Subject returns the subject that would run an object. If it returns false, the object's runs are not remembered.
	Subject func(abi.Key) (Subject, bool)
	// Children yields the uid and the resourceVersion of the watched objects that one controls, always in the same order.
	Children func(owner abi.Key, uid string, yield func(uid, resourceVersion string))
	// Answer returns the current response to a cache operation of a run of the given revision.
	Answer func(ctx context.Context, revision uint64, op abi.Op, req []byte) abi.Response
	// Version returns the resourceVersion that the object of a write has in the cache, or "" if it is not there. See applier.Cache.
	Version func(w *abi.Write) (resourceVersion string, watched bool)
	// Path is the file for the remembered runs; if empty, they are not saved. Key authenticates the file.
	Path string
	Key  []byte
	// Logger logs problems with the file. If nil, nothing is logged.
	Logger *slog.Logger
}

// Subject identifies the code and settings of the module that runs an object.
type Subject struct {
	// Revision and Settings are their numbers in this process; Digest is the digest of both.
	Revision uint64
	Settings int64
	Digest   [sha256.Size]byte
}

// Memo remembers the runs of one controller. It implements applier.Memo.
type Memo struct {
	cfg    Config
	load   sync.Once
	counts [len(results)]atomic.Uint64

	mu      sync.Mutex
	entries map[abi.Key]entry // guarded by mu
	bytes   int               // of entries; guarded by mu
	forgot  uint64            // counts calls of Renew; guarded by mu
	changed bool              // since the last save; guarded by mu
}

// digest is a truncated SHA-256.
type digest [16]byte

// entry is a remembered run. It is immutable.
type entry struct {
	version uint64 // of the object, for a quick check
	input   digest // of subject, object and children
	reads   string // requests and digests of responses: see reads.go
	// due is when the object must run again, in nanoseconds of Unix time, and after is the original delay; due is 0 if it waits for a
	// change.
	due   int64
	after time.Duration
	// place is where the object was when input was last compared, in this process.
	place place
}

// place identifies the bytes of an object in memory, and the other parts of input. The bytes of an object are immutable, so the same place
// with the same version has the same content; if the memory was freed and reused for another state, that state has another version. The
// address is not a pointer: it is only compared, and does not retain the object.
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

// New returns a Memo that remembers only the content of its file.
func New(cfg Config) *Memo {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Memo{cfg: cfg, entries: map[abi.Key]entry{}}
}

// Recall implements applier.Memo.
func (m *Memo) Recall(ctx context.Context, s *applier.Seen, now time.Time) (abi.Action, bool) {
	m.load.Do(m.read) // not earlier, because another replica may have led until now
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
	// The system clock may have been set back.
	return abi.Action{Requeue: true, After: min(time.Duration(e.due-now.UnixNano()), e.after)}, true
}

// sameInput reports whether a run would have the same input.
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
	if now, ok := m.entries[s.Key]; ok && now.input == e.input { // only Renew and the size bound may have removed it
		m.entries[s.Key] = e
	}
	return true
}

// Begin implements applier.Memo.
func (m *Memo) Begin(s *applier.Seen) applier.Reading {
	m.load.Do(m.read)
	subject, ok := m.cfg.Subject(s.Key)
	r := &reading{m: m, seen: s, subject: subject, known: ok}
	if ok { // before the run, because its result depends on the children at that time
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

// Renew forgets the given objects, or all if there are none, and the runs in progress: the next run of each object is not skipped.
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

// Len returns the number of remembered runs.
func (m *Memo) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// store remembers a run, unless Renew was called since it began.
func (m *Memo) store(key abi.Key, e entry, forgot uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if forgot != m.forgot {
		return false
	}
	m.remove(key)
	for other := range m.entries { // in arbitrary order
		if m.bytes+e.size(key) <= maxBytes {
			break
		}
		m.remove(other)
	}
	m.put(key, e)
	return true
}

// put adds an entry. The caller must hold mu.
func (m *Memo) put(key abi.Key, e entry) {
	m.entries[key] = e
	m.bytes += e.size(key)
	m.changed = true
}

// remove removes an entry. The caller must hold mu.
func (m *Memo) remove(key abi.Key) {
	if e, ok := m.entries[key]; ok {
		m.bytes -= e.size(key)
		delete(m.entries, key)
		m.changed = true
	}
}

// snapshot returns the entries to save, or false if they are saved already.
func (m *Memo) snapshot() (map[abi.Key]entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.changed {
		return nil, false
	}
	m.changed = false
	return maps.Clone(m.entries), true
}

// childrenOf returns the digest of the children of an object.
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

// inputOf returns the digest of a run's input.
func inputOf(subject *Subject, children digest, object []byte) (d digest) {
	h := sha256.New()
	h.Write(subject.Digest[:])
	h.Write(children[:])
	h.Write(object)
	var sum [sha256.Size]byte
	copy(d[:], h.Sum(sum[:0]))
	return d
}

// versionOf returns a short hash (FNV-1a) of an object's identity and version. If it differs, the digest need not be computed.
func versionOf(s *applier.Seen) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range [...]string{s.UID, s.ResourceVersion} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h
}
