// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/internal/suggest"
)

// Limits of Parse.
const (
	// maxNesting is the maximum nesting depth of brackets.
	maxNesting = 8
	// maxLength is the maximum length of an element in bytes.
	maxLength = 1024
	// minTTL is the shortest TTL; a shorter one would make the filter useless.
	minTTL = time.Second
)

// Parse compiles the predicates of a manifest. A change passes if one of the elements lets it pass. An element is a predicate (see Words for
// their names), or several in all(...) or any(...), which can be nested:
//
//	["generation", "all(labels, annotations)"]
//
// The element "ttl=30m" sets the TTL, a Go duration of at least a second; "ttl=never" turns it off. The default is DefaultTTL.
//
// A list without predicates returns nil, which hides nothing. The error names the element and, if possible, suggests the intended word.
func Parse(elements []string, opts Options) (*Filter, error) {
	f := &Filter{ttl: DefaultTTL, opts: opts}
	haveTTL := false
	for i, element := range elements {
		if value, ok := strings.CutPrefix(strings.TrimSpace(element), "ttl="); ok {
			if haveTTL {
				return nil, fmt.Errorf("predicates[%d]: %q: ttl appears twice", i, element)
			}
			haveTTL = true
			var err error
			if f.ttl, err = parseTTL(value); err != nil {
				return nil, fmt.Errorf("predicates[%d]: %q: %w", i, element, err)
			}
			continue
		}
		t, err := parseElement(element)
		if err != nil {
			return nil, fmt.Errorf("predicates[%d]: %q: %w", i, element, err)
		}
		f.term.of = append(f.term.of, t)
	}
	if len(f.term.of) == 0 {
		return nil, nil
	}
	if len(f.term.of) == 1 {
		f.term = f.term.of[0]
	}
	f.uses = f.term.uses() &^ Func
	if f.ttl > 0 && f.uses != 0 {
		f.passed = newMemory(f.ttl)
	}
	return f, nil
}

func parseTTL(value string) (time.Duration, error) {
	if value == "never" {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf(`ttl: want a duration such as "30m", or "never": %w`, err)
	}
	if d < minTTL {
		return 0, fmt.Errorf(`ttl: %v is less than %v; "never" turns it off`, d, minTTL)
	}
	return d, nil
}

func parseElement(s string) (term, error) {
	if len(s) > maxLength {
		return term{}, fmt.Errorf("is longer than %d bytes", maxLength)
	}
	p := parser{rest: s}
	t, err := p.term(0)
	if err != nil {
		return term{}, err
	}
	if p.space(); p.rest != "" {
		return term{}, fmt.Errorf("unexpected %q after %s", p.rest, t)
	}
	return t, nil
}

// parser reads one element from left to right.
type parser struct{ rest string }

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\n\r") }

// word reads up to the next bracket, comma or space.
func (p *parser) word() string {
	p.space()
	end := strings.IndexAny(p.rest, "(), \t\n\r")
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// next consumes c if it is the next character.
func (p *parser) next(c byte) bool {
	if p.space(); p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) term(depth int) (term, error) {
	if depth > maxNesting {
		return term{}, fmt.Errorf("brackets nest deeper than %d", maxNesting)
	}
	word := p.word()
	switch word {
	case "all", "any":
		of, err := p.list(word, depth)
		return term{all: word == "all", of: of}, err
	case "":
		return term{}, fmt.Errorf("a predicate is missing: one of %s", allWords)
	case "ttl":
		return term{}, errors.New(`ttl is set by an element of its own: "ttl=30m"`)
	}
	for i, name := range words {
		if word == name {
			if p.next('(') {
				return term{}, fmt.Errorf("%s takes no arguments in brackets", word)
			}
			return term{word: 1 << i}, nil
		}
	}
	hint := suggest.Hint(word, append([]string{"all", "any"}, words[:]...))
	return term{}, fmt.Errorf("%q is not a predicate: want one of %s, or all(...) or any(...) of them%s", word, allWords, hint)
}

// allWords lists the predicates for errors.
var allWords = strings.Join(words[:], ", ")

// list reads the bracketed list after all or any.
func (p *parser) list(of string, depth int) ([]term, error) {
	if !p.next('(') {
		return nil, fmt.Errorf("brackets are missing: write %s(generation, labels)", of)
	}
	var terms []term
	for {
		t, err := p.term(depth + 1)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
		switch {
		case p.next(','):
		case p.next(')'):
			return terms, nil
		default:
			return nil, fmt.Errorf("%s(...) is not closed: a bracket or a comma is missing after %s", of, t)
		}
	}
}
