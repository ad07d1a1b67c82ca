// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzJSON checks that AppendJSON accepts exactly the valid JSON, and that
// AppendAsJSON writes the same value back.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `1.5`, `1e3`, `1E-7`, `1e21`, `123456789012345678901`, `01`, `+1`, `1.`, `.5`, `1e`, `-`, `1e400`,
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9é世"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\u12"`, `"\x"`, `"`, `"\`, "\"\x01\"", "\"\x7f\"",
		`[]`, `[1,[2,{}],"3"]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `{}`, ` { "a" : [ null ] , "b":{} } `, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `nul`, `truex`, `1 2`,
		strings.Repeat("[", 128) + strings.Repeat("]", 128), strings.Repeat("[", 130) + strings.Repeat("]", 130),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, js []byte) {
		msg, err := AppendJSON(nil, js)
		if bounded := errors.Is(err, ErrTooDeep) || errors.Is(err, ErrNumber) || !utf8.Valid(js); (err == nil) != json.Valid(js) && !bounded {
			t.Fatalf("%q: error %v, valid: %v", js, err, json.Valid(js))
		}
		if err != nil {
			return
		}
		again, err := AppendAsJSON(nil, msg)
		if err != nil {
			t.Fatalf("%q: % x: %v", js, msg, err)
		}
		var want, got any
		if err := json.Unmarshal(js, &want); err != nil {
			return // a number outside of the range of a float64
		}
		if err := json.Unmarshal(again, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: became %q, %v", js, again, err)
		}
	})
}
