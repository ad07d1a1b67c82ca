package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Append writes a line for each change, after an indent.
func Append(b *strings.Builder, by string, changes []Change) {
	for i := range changes {
		b.WriteString(by + changes[i].String() + "\n")
	}
}

// String returns the change in a line: + is what has come, - what has gone, ~ what
// is another now.
func (c *Change) String() string {
	if c.Before == "" && c.After == "" {
		return "  " + Clean(c.Path)
	}
	return Line(c.Path, c.Before, c.After)
}

// Line is a line about something of which two sides have a value each; empty is
// that of a side that has none.
func Line(what, before, after string) string {
	what, before, after = Clean(what), Clean(before), Clean(after)
	switch {
	case before == "":
		return fmt.Sprintf("+ %s: %s", what, after)
	case after == "":
		return fmt.Sprintf("- %s: %s", what, before)
	}
	return fmt.Sprintf("~ %s: %s -> %s", what, before, after)
}

// Join returns the path of the key of a map at a path: "metadata.labels[a.b/c]".
func Join(path, key string) string { return string(appendKey([]byte(path), key)) }

// Values returns two values as Change has them, nil being none.
func Values(before, after any, bounds Bounds) (from, to string) {
	if bounds.Value == 0 {
		bounds.Value = MaxValue
	}
	return part(valueText(before), valueText(after), bounds.Value)
}

func valueText(v any) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// Clean replaces what a terminal could take for a command: guests choose texts
// too. Lines stay.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		if r == '\t' {
			return ' '
		}
		return '?'
	}, s)
}
