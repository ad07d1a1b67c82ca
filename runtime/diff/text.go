package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// String returns the change in a line: + is added, - removed, ~ changed.
func (c *Change) String() string {
	if c.Before == "" && c.After == "" {
		return "  " + text.Line(c.Path)
	}
	return Line(c.Path, c.Before, c.After)
}

// Line is a line about something of which two sides have a value each; empty is
// that of a side that has none.
func Line(what, before, after string) string {
	what, before, after = text.Line(what), text.Line(before), text.Line(after)
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
	js, err := asJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return js
}

func asJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// show returns a value as JSON.
func show(value []byte) (string, error) {
	if value == nil {
		return "", nil
	}
	v, err := abi.DecodeValue(value)
	if err != nil {
		return "", err
	}
	return asJSON(v)
}

// lead is how much of what two texts have in common is shown where they part.
const lead = 20

// part returns at most about n bytes of two values. Where they are too long and
// part late, it begins shortly before they do.
func part(before, after string, n int) (from, to string) {
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	if max(len(before), len(after)) > n && same > n/2 {
		at := same - min(lead, n/4)
		for at > 0 && !utf8.RuneStart(before[at]) {
			at--
		}
		return "..." + Clip(before[at:], n), "..." + Clip(after[at:], n)
	}
	return Clip(before, n), Clip(after, n)
}

// Clip returns at most about n bytes of a text, and says by "..." that there
// are more. The rest of the text is not kept in memory.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return text.Truncate(s, n) + "..."
}
