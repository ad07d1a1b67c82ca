// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// logged returns the records of what a guest prints, as JSON without the time.
func logged(t testing.TB, stream Stream, printed string) []string {
	t.Helper()
	var out bytes.Buffer
	hide := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hide}))
	limits, _ := share.Limits{}.For(&abi.Manifest{})
	env := &Env{Log: log, Module: &Module{}, Share: &share.Module{}, Limits: limits}
	d := NewDesk(env, &Run{}, nil)
	d.Print(stream, []byte(printed+"\n"))
	var lines []string
	for line := range bytes.SplitSeq(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		lines = append(lines, string(line))
	}
	return lines
}

// TestPrint_ReadsTheLinesOfLoggingLibraries: level, message and attributes, without the time and without colors. Other
// lines stay text with the level of their stream.
func TestPrint_ReadsTheLinesOfLoggingLibraries(t *testing.T) {
	record := func(level, rest string) string { return `{"level":"` + level + `",` + rest + `,"from":"guest"}` }
	for line, want := range map[string]string{
		// zerolog
		`{"level":"error","error":"no","time":"2026-01-02T03:04:05Z","message":"failed"}`: record("ERROR", `"msg":"failed","error":"no"`),
		"\x1b[90m3:04PM\x1b[0m \x1b[32mINF\x1b[0m started \x1b[36mpods=\x1b[0m3":          record("INFO", `"msg":"started","pods":"3"`),
		"2026-01-02T03:04:05Z WRN main.go:7 > slow down a=\"b c\"":                        record("WARN", `"msg":"slow down","a":"b c","caller":"main.go:7"`),
		"<nil> DBG plain": record("DEBUG", `"msg":"plain"`),
		// zap
		`{"level":"info","ts":1767323045.1,"logger":"setup","caller":"a.go:1","msg":"ready","generation":12345678901234567890}`: record("INFO", `"msg":"ready","caller":"a.go:1","generation":12345678901234567890,"logger":"setup"`),
		"2026-01-02T03:04:05.000Z\tINFO\tsetup\tcmd/main.go:9\tstarting\t{\"a\": {\"b\": 1}}":                                   record("INFO", `"msg":"starting","a":{"b":1},"caller":"cmd/main.go:9","logger":"setup"`),
		"2026-01-02T03:04:05.000Z\t\x1b[31mERROR\x1b[0m\tfailed":                                                                record("ERROR", `"msg":"failed"`),
		// klog
		"I0102 03:04:05.000000   12345 a.go:123] plain words":                 record("INFO", `"msg":"plain words","caller":"a.go:123"`),
		`E0102 03:04:05.000000       1 a.go:123] "failed" err="no" pod="a/b"`: record("ERROR", `"msg":"failed","caller":"a.go:123","err":"no","pod":"a/b"`),
		`{"ts":1767323045.1,"caller":"a.go:1","msg":"x","v":0}`:               record("INFO", `"msg":"x","caller":"a.go:1","v":0`),
		// slog, logrus, logr, go-kit
		`{"time":"2026-01-02T03:04:05Z","level":"INFO+2","msg":"x","object":"a"}`: record("INFO", `"msg":"x","guest_object":"a"`),
		`time=2026-01-02T03:04:05Z level=WARN msg="slow down" n=1`:                record("WARN", `"msg":"slow down","n":"1"`),
		`time="2026-01-02T03:04:05Z" level=fatal msg=gone`:                        record("ERROR", `"msg":"gone"`),
		`ERRO[0001] it failed                     error=no`:                       record("ERROR", `"msg":"it failed","error":"no"`),
		`2026/01/02 03:04:05 a.go:1: "level"=2 "msg"="detail" "k"="v w"`:          record("DEBUG", `"msg":"detail","k":"v w"`),
		`2026/01/02 03:04:05 "msg"="failed" "error"="no"`:                         record("ERROR", `"msg":"failed","error":"no"`),
		`ts=2026-01-02T03:04:05Z caller=a.go:1 level=debug msg=x`:                 record("DEBUG", `"msg":"x","caller":"a.go:1"`),
		// text
		"2026/01/02 03:04:05 ordinary": record("WARN", `"msg":"2026/01/02 03:04:05 ordinary"`),
		"NAME\tERROR\tCOUNT":           record("WARN", `"msg":"NAME\tERROR\tCOUNT"`),
		`{"a":1}`:                      record("WARN", `"msg":"{\"a\":1}"`),
		`{"msg":"x"} more`:             record("WARN", `"msg":"{\"msg\":\"x\"} more"`),
		`{"msg":7}`:                    record("WARN", `"msg":"{\"msg\":7}"`),
		"\x1b[1mbold\x1b[0m\x1b]8;;http://x\x07link": record("WARN", `"msg":"boldlink"`),
		"a=b c=d": record("WARN", `"msg":"a=b c=d"`),
	} {
		if got := logged(t, Stderr, line); len(got) != 1 || got[0] != want {
			t.Errorf("%q:\ngot  %s\nwant %s", line, got, want)
		}
	}
}

// FuzzPrint: a line of a hostile guest becomes one record with a bounded number of attributes, none of which is one of
// the host's own.
func FuzzPrint(f *testing.F) {
	for _, line := range []string{`{"msg":"x","from":"host"}`, "I0102 03:04:05.000000 1 a.go:1] \"x\" a=b", "x\tINFO\ty\t{}", "1 INF a b=c", `msg="x" "level"=1`, "\x1b[1m\x1b]8;;x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, got := range logged(t, Stderr, line) {
			d := json.NewDecoder(bytes.NewReader([]byte(got)))
			froms, depth := 0, 0
			for {
				token, err := d.Token()
				if err != nil {
					break
				}
				switch token {
				case json.Delim('{'), json.Delim('['):
					depth++
				case json.Delim('}'), json.Delim(']'):
					depth--
				case fromKey:
					if depth == 1 {
						froms++
					}
				}
			}
			var m map[string]any
			if got != "" && json.Unmarshal([]byte(got), &m) != nil {
				t.Fatalf("%q: %s", line, got)
			}
			if keys := len(m); keys > maxAttributes+4 || got != "" && (froms == 0 || m[fromKey] != "guest") {
				t.Errorf("%q: %s", line, got)
			}
		}
	})
}
