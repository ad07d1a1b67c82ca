// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// GoFlags are flags of go build that decide what is in a program. They have the form of the go command.
type GoFlags struct {
	// Tags are the build tags.
	Tags []string `json:"tags,omitempty"`
	// LDFlags set variables: -X NAME=VALUE, and further ones. The flags -s, -w and -buildid have no effect,
	// because modules are built with them. Other flags are refused.
	LDFlags string `json:"ldflags,omitempty"`

	modules string // the value of -mod in GOFLAGS
}

// over returns f, with the fields of other that are empty in f.
func (f GoFlags) over(other GoFlags) GoFlags {
	if len(f.Tags) > 0 {
		other.Tags = f.Tags
	}
	if f.LDFlags != "" {
		other.LDFlags = f.LDFlags
	}
	return other
}

// commandFlags are GoFlags as values of -tags, -ldflags and -mod.
type commandFlags struct{ tags, linker, modules string }

// effective returns the flags for a folder: f, and otherwise those of GOFLAGS, as go build has them there.
// It is an error if GOFLAGS has a flag that would make another program, and that the build of a module does
// not take.
func (f GoFlags) effective(ctx context.Context, dir string) (commandFlags, error) {
	c := command{dir: dir, name: "go", args: []string{"env", "GOFLAGS"}}
	text, err := c.output(ctx)
	if err != nil {
		return commandFlags{}, fmt.Errorf("%w: %w: %s", ErrNoToolchain, err, getGo)
	}
	own, err := parseGoFlags(text)
	if err != nil {
		return commandFlags{}, fmt.Errorf("GOFLAGS: %w", err)
	}
	f = f.over(own)
	linker, err := f.linker()
	return commandFlags{strings.Join(f.Tags, ","), linker, f.modules}, err
}

// foreign matches the flags of go build that make another program, or take it from other sources. Flags for
// other commands, and those that only print or save time, are neither taken nor refused.
var foreign = regexp.MustCompile(`^(asan|asmflags|buildmode|compiler|cover|covermode|coverpkg|gccgoflags|gcflags|linkshared|modfile|msan|overlay|pgo|race|toolexec)(=|$)`)

func parseGoFlags(text string) (f GoFlags, err error) {
	words, err := split(text)
	if err != nil {
		return f, err
	}
	for _, word := range words {
		flag := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
		name, value, _ := strings.Cut(flag, "=")
		switch {
		case name == "tags":
			f.Tags = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		case name == "ldflags":
			f.LDFlags = value
		case name == "mod":
			f.modules = value
		case foreign.MatchString(flag) && flag != "race=false" && flag != "pgo=off":
			return f, fmt.Errorf("%s has no effect on a module: build without it", word)
		}
	}
	return f, nil
}

// linker returns the -X flags of LDFlags, each after a space.
func (f GoFlags) linker() (string, error) {
	words, err := split(f.LDFlags)
	if err != nil {
		return "", fmt.Errorf("ldflags: %w", err)
	}
	var b strings.Builder
	for i := 0; i < len(words); i++ {
		name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(words[i], "-"), "-"), "=")
		switch name {
		case "s", "w", "buildid":
			continue
		case "X":
		default:
			return "", fmt.Errorf("ldflags: %s has no effect on a module: only -X NAME=VALUE has", words[i])
		}
		if !has && i+1 < len(words) {
			i++
			value = words[i]
		}
		if !strings.Contains(value, "=") {
			return "", fmt.Errorf("ldflags: -X %s: want NAME=VALUE", value)
		}
		quoted, err := quote(value)
		if err != nil {
			return "", fmt.Errorf("ldflags: %w", err)
		}
		b.WriteString(" -X " + quoted)
	}
	return b.String(), nil
}

// split separates words as the go command does: at white space, except for words within ' or ".
func split(text string) (words []string, err error) {
	for text = strings.TrimLeft(text, " \t\r\n"); text != ""; text = strings.TrimLeft(text, " \t\r\n") {
		end := strings.IndexAny(text, " \t\r\n")
		if end < 0 {
			end = len(text)
		}
		word, rest := text[:end], text[end:]
		if q := text[0]; q == '\'' || q == '"' {
			end = strings.IndexByte(text[1:], q)
			if end < 0 {
				return nil, fmt.Errorf("%s has no closing quote", text)
			}
			word, rest = text[1:1+end], text[end+2:]
		}
		words, text = append(words, word), rest
	}
	return words, nil
}

// quote returns a word that split gives back.
func quote(word string) (string, error) {
	switch {
	case !strings.ContainsAny(word, " \t\r\n'\""):
		return word, nil
	case !strings.Contains(word, "'"):
		return "'" + word + "'", nil
	case !strings.Contains(word, `"`):
		return `"` + word + `"`, nil
	}
	return "", fmt.Errorf("%s: a value must not have both kinds of quotes", word)
}
