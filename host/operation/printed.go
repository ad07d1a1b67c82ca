// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"encoding/json"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
)

// maxAttributes bounds the attributes of a printed line. A line with more stays text.
const maxAttributes = 32

// terminal matches what controls a terminal, such as colors.
var terminal = regexp.MustCompile(`\x1b(?:\[[0-9;:?]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))`)

// print logs a line that the guest has printed. A line in the form of a common logging library becomes a record
// with its level and attributes.
func (o *Output) print(level slog.Level, b []byte) {
	if !o.allow(len(b)) {
		return
	}
	// Secrets are hidden before the line is taken apart: a part of a value might not be found.
	line := o.desk.Env.Secrets.Text(terminal.ReplaceAllString(validText(b), ""))
	m := readRecord(line)
	if m == nil || len(m) > maxAttributes {
		o.guest(level, line, nil)
		return
	}
	level = takeLevel(m, level)
	msg, attrs := attributes(m)
	o.guest(level, msg, attrs)
}

// readRecord returns the parts of a line by their names, with the message as msg. It returns nil if the line has no
// known form.
func readRecord(line string) map[string]any {
	for _, read := range []func(string) map[string]any{readJSON, readKlog, readColumns, readWords, readPairs} {
		if m := read(line); m != nil {
			return m
		}
	}
	return nil
}

// readJSON reads a JSON object with a message, as zap, zerolog, slog, logrus and logr write it.
func readJSON(line string) map[string]any {
	if !strings.HasPrefix(line, "{") {
		return nil
	}
	m := fields(line)
	if text, ok := m["message"].(string); ok && m["msg"] == nil {
		delete(m, "message")
		m["msg"] = text
	}
	if _, ok := m["msg"].(string); !ok {
		return nil
	}
	return m
}

// fields decodes a JSON object.
func fields(text string) (m map[string]any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&m) != nil || strings.TrimSpace(text[d.InputOffset():]) != "" {
		return nil
	}
	return m
}

var klogLine = regexp.MustCompile(`^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ ([^\s\]]+)\] (.*)$`)

// readKlog reads a line of klog, with or without attributes.
func readKlog(line string) map[string]any {
	p := klogLine.FindStringSubmatch(line)
	if p == nil {
		return nil
	}
	m := map[string]any{"msg": p[3]}
	if quoted, err := strconv.QuotedPrefix(p[3]); err == nil {
		if rest := pairs(strings.TrimSpace(p[3][len(quoted):])); rest != nil {
			m = rest
			m["msg"], _ = strconv.Unquote(quoted)
		}
	}
	m["level"], m["caller"] = p[1], p[2]
	return m
}

var goPosition = regexp.MustCompile(`^\S+\.go:\d+$`)

// readColumns reads a line of zap's console: time, level, name, caller, message and attributes between tabs. Some
// of them may be missing.
func readColumns(line string) map[string]any {
	columns := strings.Split(line, "\t")
	if strings.ContainsAny(columns[0], "0123456789") { // the time
		columns = columns[1:]
	}
	if len(columns) < 2 || !isLevel(columns[0]) {
		return nil
	}
	m, level := map[string]any{}, columns[0]
	columns = columns[1:]
	if last := len(columns) - 1; last > 0 && strings.HasPrefix(columns[last], "{") {
		if found := fields(columns[last]); found != nil {
			m, columns = found, columns[:last]
		}
	}
	if len(columns) > 1 && !goPosition.MatchString(columns[0]) {
		m["logger"], columns = columns[0], columns[1:]
	}
	if len(columns) > 1 && goPosition.MatchString(columns[0]) {
		m["caller"], columns = columns[0], columns[1:]
	}
	m["msg"], m["level"] = strings.Join(columns, "\t"), level
	return m
}

// wordLevel matches the start of a line of zerolog's console, and of logrus at a terminal.
var wordLevel = regexp.MustCompile(`^(?:(?:\S+ )?\S+ (TRC|DBG|INF|WRN|ERR|FTL|PNC)|(TRAC|DEBU|INFO|WARN|ERRO|FATA|PANI)\[[^\]]*\]) +(?:(\S+\.go:\d+) > )?`)

var firstPair = regexp.MustCompile(` +[\w./-]+=`)

// readWords reads a line with a level, a message and then attributes.
func readWords(line string) map[string]any {
	p := wordLevel.FindStringSubmatch(line)
	if p == nil {
		return nil
	}
	msg, m := line[len(p[0]):], map[string]any(nil)
	if at := firstPair.FindStringIndex(" " + msg); at != nil {
		if m = pairs(strings.TrimSpace(msg[at[0]:])); m != nil {
			msg = strings.TrimSpace(msg[:max(0, at[0]-1)])
		}
	}
	if m == nil {
		m = map[string]any{}
	}
	if p[3] != "" {
		m["caller"] = p[3]
	}
	m["msg"], m["level"] = msg, p[1]+p[2]
	return m
}

// stdPrefix matches the time and the position that package log writes first.
var stdPrefix = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? (?:\S+\.go:\d+: )?`)

// readPairs reads a line of NAME=VALUE with a message, as slog, logrus and logr write it.
func readPairs(line string) map[string]any {
	m := pairs(strings.TrimPrefix(line, stdPrefix.FindString(line)))
	if _, ok := m["msg"]; !ok {
		return nil
	}
	return m
}

// pairs reads NAME=VALUE after NAME=VALUE. Names and values may be in quotes. It returns nil if the text has
// another form, or too many of them.
func pairs(text string) map[string]any {
	m := map[string]any{}
	for text != "" && len(m) <= maxAttributes {
		name, rest, ok := word(text, " =")
		if !ok || name == "" || !strings.HasPrefix(rest, "=") {
			return nil
		}
		value, rest, ok := word(rest[1:], " ")
		if !ok || rest != "" && rest[0] != ' ' {
			return nil
		}
		m[name], text = value, strings.TrimLeft(rest, " ")
	}
	return m
}

// word returns a word in quotes, or the text before the first of some characters.
func word(text, end string) (word, rest string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", false
		}
		word, err = strconv.Unquote(quoted)
		return word, text[len(quoted):], err == nil
	}
	n := strings.IndexAny(text, end)
	if n < 0 {
		n = len(text)
	}
	return text[:n], text[n:], true
}
