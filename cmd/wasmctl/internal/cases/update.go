// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Update returns the text of a file with the observed results in the place of the expected ones,
// for the failed verdicts. It also raises exceeded limits and, if costs is set, adds missing ones.
// Everything else, with comments and blank lines, is unchanged. Only comments within replaced text
// are lost. The verdicts must be of this file's cases.
func Update(f *File, verdicts []Verdict, costs bool) ([]byte, error) {
	lines := strings.SplitAfter(string(f.Text), "\n")
	// From the end, so that earlier line numbers stay valid.
	for _, v := range slices.Backward(verdicts) {
		var err error
		if lines, err = updateCase(lines, &v, costs); err != nil {
			return nil, fmt.Errorf("cases[%s]: case %q: %w", f.Path, v.Case.Name, err)
		}
	}
	text := []byte(strings.Join(lines, ""))
	if _, err := Parse(f.Path, text); err != nil {
		return nil, fmt.Errorf("BUG: the updated file cannot be read: %w", err)
	}
	return text, nil
}

// updateCase replaces the changed keys of a case, the last one first.
func updateCase(lines []string, v *Verdict, costs bool) ([]string, error) {
	c := v.Case
	texts := map[string]string{}
	if v.Diff != nil {
		text, err := expectText(v.Seen)
		if err != nil {
			return nil, err
		}
		texts["expect"] = text
	}
	if text := v.CostText(costs); text != "" {
		texts["cost"] = text + "\n"
	}
	if len(texts) > 0 && c.node.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("cannot update a case in the form {...}; write each key on its own line")
	}
	for _, key := range []string{"expect", "cost"} {
		if text, ok := texts[key]; ok && c.key(key) == nil {
			lines = addKey(lines, c, indented(text, c.node.Column-1))
		}
	}
	for i := len(c.node.Content) - 2; i >= 0; i -= 2 {
		if text, ok := texts[c.node.Content[i].Value]; ok {
			lines = replaceKey(lines, c, c.node.Content[i], indented(text, c.node.Column-1))
		}
	}
	return lines, nil
}

// key returns a key of the case in the file, or nil.
func (c *Case) key(name string) *yaml.Node {
	for i := 0; i+1 < len(c.node.Content); i += 2 {
		if key := c.node.Content[i]; key.Value == name {
			return key
		}
	}
	return nil
}

// replaceKey replaces the lines of a key of the case.
func replaceKey(lines []string, c *Case, key *yaml.Node, text string) []string {
	from := key.Line - 1
	first := lines[from][:key.Column-1] // may contain the dash of the list
	return slices.Replace(lines, from, blockEnd(lines, from, c.node.Column), first+strings.TrimLeft(text, " "))
}

// addKey adds a key at the end of the case.
func addKey(lines []string, c *Case, text string) []string {
	last := c.node.Content[len(c.node.Content)-2]
	at := blockEnd(lines, last.Line-1, c.node.Column)
	if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
		lines[at-1] += "\n"
	}
	return slices.Insert(lines, at, text)
}

// blockEnd returns the line after the value of the key in line from. The value continues as long as
// lines are indented more than the key's column, or are a list at that column. Blank lines and
// comments at its end are not part of it.
func blockEnd(lines []string, from, column int) int {
	end := from + 1
	for i := from + 1; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		indent := len(lines[i]) - len(text) + 1
		switch trimmed := strings.TrimSpace(text); {
		case trimmed == "":
			continue
		case indent < column, indent == column && !strings.HasPrefix(trimmed, "- "):
			return end
		case strings.HasPrefix(trimmed, "#") && indent == column:
			return end
		}
		end = i + 1
	}
	return end
}

// expectText returns the key expect with its value.
func expectText(seen *Expect) (string, error) {
	e := *seen
	if e.Action == awaitChange || e.Action == noRun {
		e.Action = "" // the default
	}
	return encode(map[string]*Expect{"expect": &e})
}

// indented returns a text with indent spaces before each line.
func indented(text string, indent int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(strings.Repeat(" ", indent))
		}
		out.WriteString(line)
	}
	return out.String()
}
