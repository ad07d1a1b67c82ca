// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Parse reads a pattern.
func Parse(pattern string) (Path, error) {
	p := parser{rest: pattern}
	for first := true; p.rest != ""; first = false {
		if err := p.step(first); err != nil {
			return nil, fmt.Errorf("field %q: %w", pattern, err)
		}
		if len(p.path) > maxSteps {
			return nil, fmt.Errorf("field: it has more than %d steps", maxSteps)
		}
	}
	if len(p.path) == 0 {
		return nil, errors.New("field: is empty: omit fields to allow all of them")
	}
	return p.path, nil
}

// parser reads the rest of a pattern into a path.
type parser struct {
	rest string
	path Path
}

func (p *parser) step(first bool) error {
	switch c := p.rest[0]; {
	case c == '[':
		p.rest = p.rest[1:]
		return p.brackets()
	case c == '.' && !first:
		p.rest = p.rest[1:]
	case !first:
		return fmt.Errorf("%q: want . or [", p.rest)
	}
	key, err := p.word()
	p.path = p.path.key(key)
	return err
}

// brackets reads a step up to its closing bracket.
func (p *parser) brackets() error {
	if rest, ok := strings.CutPrefix(p.rest, "*]"); ok {
		p.rest, p.path = rest, append(p.path, step{any: true})
		return nil
	}
	key, err := p.word()
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(p.rest, "]"); ok {
		p.rest, p.path = rest, p.path.key(key)
		return nil
	}
	match := map[string]string{}
	for {
		rest, ok := strings.CutPrefix(p.rest, "=")
		if !ok {
			return fmt.Errorf("%q: want ] or =", p.rest)
		}
		p.rest = rest
		if _, twice := match[key]; twice {
			return fmt.Errorf("%s= appears twice", key)
		}
		if match[key], err = p.word(); err != nil {
			return err
		}
		if rest, ok := strings.CutPrefix(p.rest, "]"); ok {
			p.rest, p.path = rest, append(p.path, step{match: match})
			return nil
		}
		if p.rest, ok = strings.CutPrefix(p.rest, ","); !ok {
			return errors.New("the closing bracket is missing")
		}
		if key, err = p.word(); err != nil {
			return err
		}
	}
}

// word reads a word, which may be quoted.
func (p *parser) word() (string, error) {
	if strings.HasPrefix(p.rest, `"`) {
		d := json.NewDecoder(strings.NewReader(p.rest))
		var s string
		if err := d.Decode(&s); err != nil {
			return "", fmt.Errorf("%s: not a quoted string", p.rest)
		}
		p.rest = p.rest[d.InputOffset():]
		return s, nil
	}
	end := strings.IndexAny(p.rest, special)
	if end < 0 {
		end = len(p.rest)
	}
	if end == 0 {
		return "", fmt.Errorf("%q: want a name; quote one that has any of %s", p.rest, `. [ ] " = * , \ or white space`)
	}
	s := p.rest[:end]
	p.rest = p.rest[end:]
	return s, nil
}
