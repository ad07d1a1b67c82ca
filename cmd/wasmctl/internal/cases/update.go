package cases

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Update returns the text of a file with what was seen in the place of what was
// expected, for the verdicts that failed. Nothing else changes, comments and
// blank lines included; only comments within an expectation that is replaced are
// lost. The verdicts are of this file's cases.
func Update(f *File, verdicts []Verdict) ([]byte, error) {
	lines := strings.SplitAfter(string(f.Text), "\n")
	// From the end, so that the line numbers of those before stay true.
	for _, v := range slices.Backward(verdicts) {
		if !v.Failed() {
			continue
		}
		var err error
		if lines, err = replaceExpect(lines, v.Case, v.Seen); err != nil {
			return nil, fmt.Errorf("cases[%s]: case %q: %w", f.Path, v.Case.Name, err)
		}
	}
	text := []byte(strings.Join(lines, ""))
	if _, err := Parse(f.Path, text); err != nil {
		return nil, fmt.Errorf("BUG: the updated file cannot be read: %w", err)
	}
	return text, nil
}

// replaceExpect replaces the lines of the case's key expect, or adds them at its
// end.
func replaceExpect(lines []string, c *Case, seen *Expect) ([]string, error) {
	if c.node.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("cannot update a case in the form {...}; write each key on its own line")
	}
	column := c.node.Column
	text, err := expectText(seen, column-1)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(c.node.Content); i += 2 {
		if key := c.node.Content[i]; key.Value == "expect" {
			from := key.Line - 1
			first := lines[from][:key.Column-1] // may hold the dash of the list
			return slices.Replace(lines, from, blockEnd(lines, from, column), first+strings.TrimLeft(text, " ")), nil
		}
	}
	// The last key of the case ends it.
	last := c.node.Content[len(c.node.Content)-2]
	at := blockEnd(lines, last.Line-1, column)
	if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
		lines[at-1] += "\n"
	}
	return slices.Insert(lines, at, text), nil
}

// blockEnd returns the line after the value of the key that stands in line from:
// it goes on as long as lines are indented more than the key's column, or are a
// list at it. Blank lines and comments at its end are not part of it.
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

// expectText is the key expect with its value, indented by so many spaces.
func expectText(seen *Expect, indent int) (string, error) {
	e := *seen
	if e.Action == awaitChange || e.Action == noRun {
		e.Action = "" // is the default
	}
	text, err := encode(map[string]*Expect{"expect": &e})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(strings.Repeat(" ", indent))
		}
		out.WriteString(line)
	}
	return out.String(), nil
}
