package memo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// Result says what became of a run.
type Result int

// The results: a run is skipped, remembered, or neither because of what it did.
const (
	Skipped    Result = iota
	Remembered        // the next one may be skipped
	Wrote             // it wrote otherwise than by an apply to what is watched
	Operation         // it used another operation than those of the cache, or one failed
	Clock
	Random
	Limit // it asked what is left of a limit, or reached one
	Metric
	Large   // it read too much of the cache
	Changed // the module, its settings, or when it is to run again, changed meanwhile
)

// results are the names of the results.
var results = [...]string{"skipped", "remembered", "wrote", "operation", "clock", "random", "limit", "metric", "large", "changed"}

// Counts returns how many runs had each result, by its name.
func (m *Memo) Counts() map[string]uint64 {
	counts := make(map[string]uint64, len(results))
	for i, name := range results {
		counts[name] = m.counts[i].Load()
	}
	return counts
}

// sources are the results of runs that asked for what differs each time.
var sources = [...]struct {
	abi.Source
	Result
}{{abi.SourceClock, Clock}, {abi.SourceRandom, Random}, {abi.SourceLimit, Limit}, {abi.SourceMetric, Metric}}

// reading takes down what a run reads. It implements applier.Reading.
type reading struct {
	m        *Memo
	seen     *applier.Seen
	subject  Subject
	known    bool // that is the subject
	children digest
	forgot   uint64
	reads    []byte
	applied  int    // writes that are remembered, and whose answer the guest has not got
	why      Result // why the run cannot be remembered, where it is not 0
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
		r.applied-- // Wrote has noted it
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

// Wrote implements applier.Reading. To apply the same to an object that still has the
// version which that led to changes nothing, and has the same answer.
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

// add takes down a read.
func (r *reading) add(kind readKind, req []byte, answer digest) {
	if len(r.reads)+len(req)+maxHead > maxReads {
		r.why = Large
		return
	}
	r.reads = appendRead(r.reads, kind, req, answer)
}

// Keep implements applier.Reading.
func (r *reading) Keep(revision uint64, action abi.Action, now time.Time) {
	result := r.why
	if result == 0 {
		result = r.keep(revision, action, now)
	}
	r.m.counts[result].Add(1)
}

func (r *reading) keep(revision uint64, action abi.Action, now time.Time) Result {
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
	if !r.m.keep(r.seen.Key, e, r.forgot) {
		return Changed
	}
	return Remembered
}

// answerOf is the digest of an answer.
func (s *Subject) answerOf(res abi.Response) (d digest) {
	h := sha256.New()
	h.Write(s.Digest[:])
	h.Write([]byte{byte(res.Status)}) //nolint:gosec // a small number
	h.Write(res.Body)
	var sum [sha256.Size]byte
	copy(d[:], h.Sum(sum[:0]))
	return d
}

// maxHead is what a read takes at most beside the request.
const maxHead = 1 + binary.MaxVarintLen64 + len(digest{})

// readKind is what a read is.
type readKind byte

// The kinds of reads.
const (
	gets    readKind = iota // cache_get, with its request
	lists                   // cache_list, with its request
	applies                 // the version in the cache of what was applied, with its name
	kinds
)

// appendRead appends a read: its kind, the length of the request, the request, the
// digest of the answer.
func appendRead(b []byte, kind readKind, req []byte, answer digest) []byte {
	b = binary.AppendUvarint(append(b, byte(kind)), uint64(len(req)))
	return append(append(b, req...), answer[:]...)
}

// cutRead returns the first read, and those after it.
func cutRead(b []byte) (kind readKind, req []byte, answer digest, rest []byte, ok bool) {
	if len(b) == 0 || readKind(b[0]) >= kinds {
		return kinds, nil, answer, nil, false
	}
	kind = readKind(b[0])
	size, n := binary.Uvarint(b[1:])
	if b = b[1:]; n <= 0 || size > uint64(len(b)-n) || uint64(len(b)-n)-size < uint64(len(answer)) {
		return kinds, nil, answer, nil, false
	}
	req, b = b[n:n+int(size)], b[n+int(size):] //nolint:gosec // no longer than b
	return kind, req, digest(b[:len(answer)]), b[len(answer):], true
}

// appendWrite names the object of a write.
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

// sameReads reports whether the cache gives the same answers as then.
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
