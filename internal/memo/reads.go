// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// Result is what the memo did with a run.
type Result int

// The results: a run was skipped, remembered, or not remembered for the given reason.
const (
	Skipped    Result = iota
	Remembered        // the next one may be skipped
	Wrote             // it wrote other than by applying to watched objects
	Operation         // it used an operation other than those of the cache, or one failed
	Clock
	Random
	Limit // it read the remainder of a limit, or exceeded one
	Metric
	Large   // it read too much from the cache
	Changed // the module, its settings or the time of the next run changed during the run
)

// results are the names of the results.
var results = [...]string{"skipped", "remembered", "wrote", "operation", "clock", "random", "limit", "metric", "large", "changed"}

// Counts returns the number of runs by the name of their result.
func (m *Memo) Counts() map[string]uint64 {
	counts := make(map[string]uint64, len(results))
	for i, name := range results {
		counts[name] = m.counts[i].Load()
	}
	return counts
}

// sources maps variable inputs to results.
var sources = [...]struct {
	abi.Source
	Result
}{{abi.SourceClock, Clock}, {abi.SourceRandom, Random}, {abi.SourceLimit, Limit}, {abi.SourceMetric, Metric}}

// reading records what a run reads. It implements applier.Reading.
type reading struct {
	m        *Memo
	seen     *applier.Seen
	subject  Subject
	known    bool // the subject is known
	children digest
	forgot   uint64
	reads    []byte
	applied  int    // recorded writes for which Read has not been called yet
	why      Result // why the run cannot be remembered, or 0
}

// Read implements applier.Reading.
func (r *reading) Read(read abi.Read) {
	switch {
	case r.why != 0 || !r.known:
	case read.Op == abi.OpCacheGet:
		r.add(gets, read.Request, r.subject.answerOf(read.Response))
	case read.Op == abi.OpCacheList:
		r.add(lists, read.Request, r.subject.answerOf(read.Response))
	case read.Op == abi.OpAPIApply && r.applied > 0:
		r.applied-- // Wrote has recorded it
	case read.Op != "":
		r.why = Operation
	default:
		for _, s := range sources {
			if read.Source&s.Source != 0 && r.why == 0 {
				r.why = s.Result
			}
		}
	}
}

// Wrote implements applier.Reading. Applying the same to an object that still has the resulting version changes nothing, and has the same
// response.
func (r *reading) Wrote(w *abi.Write, watched bool) {
	switch {
	case r.why != 0 || !r.known:
	case w.Op != abi.OpAPIApply || w.Subresource != "" && w.Subresource != "status" || w.Deleted || w.ResourceVersion == "" || !watched:
		r.why = Wrote
	default:
		r.applied++
		r.add(applies, appendWrite(nil, w), r.subject.answerOf(abi.Response{Body: []byte(w.ResourceVersion)}))
	}
}

// add records a read.
func (r *reading) add(kind readKind, req []byte, answer digest) {
	if len(r.reads)+len(req)+maxHead > maxReads {
		r.why = Large
		return
	}
	r.reads = appendRead(r.reads, kind, req, answer)
}

// Commit implements applier.Reading.
func (r *reading) Commit(revision uint64, action abi.Action, now time.Time) {
	result := r.why
	if result == 0 {
		result = r.store(revision, action, now)
	}
	r.m.counts[result].Add(1)
}

func (r *reading) store(revision uint64, action abi.Action, now time.Time) Result {
	after, ok := r.m.cfg.Subject(r.seen.Key)
	if !r.known || !ok || after != r.subject || revision != after.Revision || action.Requeue && action.After <= 0 {
		return Changed
	}
	e := entry{
		version: versionOf(r.seen), input: inputOf(&r.subject, r.children, r.seen.Object), reads: string(r.reads),
		place: placeOf(&r.subject, r.children, r.seen.Object),
	}
	if action.Requeue {
		e.due, e.after = now.Add(action.After).UnixNano(), action.After
	}
	if !r.m.store(r.seen.Key, e, r.forgot) {
		return Changed
	}
	return Remembered
}

// answerOf returns the digest of a response.
func (s *Subject) answerOf(res abi.Response) (d digest) {
	h := sha256.New()
	h.Write(s.Digest[:])
	h.Write([]byte{byte(res.Status)}) // a small number
	h.Write(res.Body)
	var sum [sha256.Size]byte
	copy(d[:], h.Sum(sum[:0]))
	return d
}

// maxHead is the maximum size of a read without its request.
const maxHead = 1 + binary.MaxVarintLen64 + len(digest{})

// readKind is the kind of a read.
type readKind byte

// The kinds of reads.
const (
	gets    readKind = iota // cache_get, with its request
	lists                   // cache_list, with its request
	applies                 // the version of an applied object in the cache, with the object's name
	kinds
)

// appendRead appends a read: its kind, the length of the request, the request, and the digest of the response.
func appendRead(b []byte, kind readKind, req []byte, answer digest) []byte {
	b = binary.AppendUvarint(append(b, byte(kind)), uint64(len(req)))
	return append(append(b, req...), answer[:]...)
}

// cutRead splits off the first read.
func cutRead(b []byte) (kind readKind, req []byte, answer digest, rest []byte, ok bool) {
	if len(b) == 0 || readKind(b[0]) >= kinds {
		return kinds, nil, answer, nil, false
	}
	kind = readKind(b[0])
	size, n := binary.Uvarint(b[1:])
	if b = b[1:]; n <= 0 || size > uint64(len(b)-n) || uint64(len(b)-n)-size < uint64(len(answer)) {
		return kinds, nil, answer, nil, false
	}
	req, b = b[n:n+int(size)], b[n+int(size):] // not longer than b
	return kind, req, digest(b[:len(answer)]), b[len(answer):], true
}

// appendWrite appends the identity of a written object.
func appendWrite(b []byte, w *abi.Write) []byte {
	for _, part := range [...]string{w.Group, w.Version, w.Resource, w.Key.Namespace, w.Key.Name} {
		b = appendText(b, part)
	}
	return b
}

func readWrite(b []byte) *abi.Write {
	f := decoder{rest: b}
	return &abi.Write{Group: f.text(), Version: f.text(), Resource: f.text(), Key: abi.Key{Namespace: f.text(), Name: f.text()}}
}

// sameReads reports whether the cache gives the same responses as at the time of the run.
func (m *Memo) sameReads(ctx context.Context, subject *Subject, reads string) bool {
	for rest := []byte(reads); len(rest) > 0; {
		kind, req, answer, after, ok := cutRead(rest)
		if !ok {
			return false
		}
		var now abi.Response
		switch kind {
		case gets:
			now = m.cfg.Answer(ctx, subject.Revision, abi.OpCacheGet, req)
		case lists:
			now = m.cfg.Answer(ctx, subject.Revision, abi.OpCacheList, req)
		default:
			version, _ := m.cfg.Version(readWrite(req))
			now.Body = []byte(version)
		}
		if subject.answerOf(now) != answer {
			return false
		}
		rest = after
	}
	return true
}
