// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// String returns the change as a line: + means added, - removed, ~ changed.
func (c *Change) String() string {
	if c.Before == "" && c.After == "" {
		return "  " + text.Line(c.Path)
	}
	return Line(c.Path, c.Before, c.After)
}

// Line formats two values as a line; an empty one is missing.
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

// Join appends a map key to a path, such as "metadata.labels[a.b/c]".
func Join(path, key string) string { return string(appendKey([]byte(path), key)) }

// Values formats two values like those of a Change; nil means missing.
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

// lead is the length of the common text to show before the first difference.
const lead = 20

// part returns at most about n bytes of two values. If they are long and differ late, it begins shortly before the difference.
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
		return "..." + text.Clip(before[at:], n), "..." + text.Clip(after[at:], n)
	}
	return text.Clip(before, n), text.Clip(after, n)
}
