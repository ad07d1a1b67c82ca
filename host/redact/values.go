// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"sync"

	"github.com/wasmctl/wasmctl/internal/text"
)

// Limits of Values.
const (
	// DefaultMaxBytes is the number of bytes of values that are remembered at least before the
	// oldest are forgotten.
	DefaultMaxBytes = 4 << 20
	// MinLength is the length of the shortest value that is hidden in text. Shorter ones would hide
	// parts of every log.
	MinLength = 4

	// block is the length of the parts of longer values that are found: any 31 bytes of a value
	// contain a whole block.
	block = 16
)

// Values has the secret values that a module has seen, within a limit: at least the last MaxBytes
// of them, and at most twice as many. A nil Values has no values, and the zero value is usable. All
// methods are safe for concurrent use.
type Values struct {
	// MaxBytes limits the memory, in bytes of values, with each form of a value counted. It uses
	// about four times as much. If zero, it is DefaultMaxBytes. It must be set before the first
	// use.
	MaxBytes int

	mu sync.RWMutex
	// young receives new values. When it is full, it becomes old, and the previous old is
	// forgotten. They and their content are guarded by mu.
	young, old *index
}

// index finds values in text: short ones by length, long ones by blocks.
type index struct {
	starts  [1 << 10]uint64 // a bit for each possible first two bytes
	short   map[string]struct{}
	lengths uint32 // a bit for each length in short
	blocks  map[[block]byte]struct{}
	size    int // bytes
}

func (v *Values) add(texts []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	limit := v.MaxBytes
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	for _, text := range texts {
		if v.young == nil || v.young.size >= limit {
			v.young, v.old = &index{short: map[string]struct{}{}, blocks: map[[block]byte]struct{}{}}, v.young
		}
		v.young.add(text)
	}
}

func (x *index) add(text string) {
	switch n := len(text); {
	case n < MinLength:
	case n < block:
		if _, known := x.short[text]; !known {
			x.short[strings.Clone(text)] = struct{}{}
			x.lengths |= 1 << n
			x.start(text)
			x.size += n
		}
	default:
		for at := 0; at+block <= n; at += block {
			x.addBlock(text[at : at+block])
		}
		x.addBlock(text[n-block:])
	}
}

func (x *index) addBlock(text string) {
	b := [block]byte([]byte(text))
	if _, known := x.blocks[b]; known {
		return
	}
	x.blocks[b] = struct{}{}
	x.start(text)
	x.size += block
}

func (x *index) start(text string) {
	bit := uint(text[0])<<8 | uint(text[1])
	x.starts[bit/64] |= 1 << (bit % 64)
}

// match returns the number of bytes of text from at on that are a value or a block of one, and
// whether it is a block.
func (x *index) match(text string, at int) (n int, isBlock bool) {
	if x == nil || len(text)-at < MinLength {
		return 0, false
	}
	bit := uint(text[at])<<8 | uint(text[at+1])
	if x.starts[bit/64]&(1<<(bit%64)) == 0 {
		return 0, false
	}
	rest := text[at:]
	if len(rest) >= block {
		if _, ok := x.blocks[[block]byte([]byte(rest[:block]))]; ok {
			return block, true
		}
	}
	for n := min(block-1, len(rest)); n >= MinLength; n-- {
		if x.lengths&(1<<n) == 0 {
			continue
		}
		if _, ok := x.short[rest[:n]]; ok {
			return n, false
		}
	}
	return 0, false
}

// Text returns text with Mark in the place of each known value. It finds a part of a value if the
// part has 31 bytes or more, so the caller should not cut text before. Without findings, it returns
// text unchanged.
func (v *Values) Text(text string) string {
	return v.text(text, func(string) string { return Mark })
}

// DistinctText is Text with the marks of Distinct, for diffs.
func (v *Values) DistinctText(text string) string {
	return v.text(text, func(hidden string) string { return tagged(hidden).(string) })
}

// Found reports whether a message has a known value. Its encoding must not change strings.
func (v *Values) Found(message []byte) bool {
	if v == nil {
		return false
	}
	v.mu.RLock()
	none := v.young == nil
	v.mu.RUnlock()
	if none {
		return false
	}
	text := string(message)
	return v.Text(text) != text
}

func (v *Values) text(text string, mark func(hidden string) string) string {
	if v == nil || len(text) < MinLength {
		return text
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.young == nil {
		return text
	}
	var out strings.Builder
	done := 0 // everything before it was written
	for at := 0; at < len(text); {
		start, end := v.span(text, done, at)
		if end == 0 {
			at++
			continue
		}
		out.WriteString(text[done:start])
		out.WriteString(mark(text[start:end]))
		at, done = end, end
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return strings.ToValidUTF8(out.String(), "\uFFFD")
}

// span returns the bytes to hide for a match at the given position. If end is 0, there is no match.
// The caller must hold mu.
func (v *Values) span(text string, done, at int) (start, end int) {
	start = at
	blocks := false
	for next := at; next <= max(end, at) && next < len(text); next++ {
		n, isBlock := v.young.match(text, next)
		if m, b := v.old.match(text, next); m > n {
			n, isBlock = m, b
		}
		if n > 0 {
			end, blocks = max(end, next+n), blocks || isBlock
		}
	}
	if !blocks {
		return start, end
	}
	// The rest of a value, if a part of it was found.
	for i := 1; i < block && start > done && !delimits(text[start-1]); i++ {
		start--
	}
	for i := 1; i < block && end < len(text) && !delimits(text[end]); i++ {
		end++
	}
	return start, end
}

func delimits(c byte) bool { return c <= ' ' || strings.IndexByte("\"'`,;:=<>()[]{}", c) >= 0 }

// Any is Text for each string in a value of maps, slices and strings. Changed parts are copied.
func (v *Values) Any(value any) any { return replaceText(value, v.Text) }

// DistinctAny is Any with the marks of Distinct.
func (v *Values) DistinctAny(value any) any { return replaceText(value, v.DistinctText) }

// replaceText returns a value with each of its strings and keys replaced.
func replaceText(value any, text func(string) string) any {
	switch value := value.(type) {
	case string:
		return text(value)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = replaceText(item, text)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, part := range value {
			out[text(key)] = replaceText(part, text)
		}
		return out
	default:
		return value
	}
}

// Error returns an error that matches the same targets as err, and whose text is Text of err's.
// Without findings, it returns err. The wrapped error is unchanged.
func (v *Values) Error(err error) error {
	if err == nil {
		return nil
	}
	shown := err.Error()
	hidden := v.Text(shown)
	if hidden == shown {
		return err
	}
	return text.Replace(err, hidden)
}
