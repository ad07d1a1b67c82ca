// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// valueCases are about the values of an object other than numbers. Each is read in place, decoded,
// and encoded again.
func valueCases() []Case {
	v := func(id, about string, value any) Case { return valueCase("value."+id, about, value) }
	cases := []Case{
		v("nil", "nil", nil), v("true", "true", true), v("false", "false", false),
		v("string.empty", "an empty string", ""),
		v("string.unicode", "letters of many scripts", "größe 中文 עברית ไทย e\u0301 😀👩‍👩‍👧"),
		v("string.control", "control characters and NUL", "a\x00b\x01\t\r\n\x7f\u0085\u2028"),
		v("string.markup", "characters that other formats escape", `"\/<>&'{}[]${x}%s`),
		v("map.empty", "an empty map", object{}), v("array.empty", "an empty array", list{}),
		v("map.keys", "keys that are empty, long, and not ASCII", object{"": 1, "größe": 2, strings.Repeat("k", 300): 3, "a.b/c": 4, "a\x00b": 5}),
		v("mixed", "all types in one", object{"a": list{1, "x", nil, true, object{"b": list{list{}}}}, "n": nil, "f": 1.5}),
		v("depth.32", "32 maps and arrays in each other", nested(32)), v("depth.100", "100 maps and arrays in each other", nested(100)),
		v("string.3MiB", "a string of 3 MiB", strings.Repeat("größe ", 3<<20/8)),
	}
	for _, n := range []int{31, 32, 255, 256, 65535, 65536} {
		cases = append(cases, v(fmt.Sprintf("string.%d", n), fmt.Sprintf("a string of %d bytes", n), strings.Repeat("s", n)))
	}
	for _, n := range []int{15, 16, 65535, 65536} {
		cases = append(cases, v(fmt.Sprintf("array.%d", n), fmt.Sprintf("an array of %d elements", n), numbers(n)))
	}
	for _, n := range []int{15, 16, 5000} {
		cases = append(cases, v(fmt.Sprintf("map.%d", n), fmt.Sprintf("a map of %d keys", n), wide(n)))
	}
	return append(
		cases,
		Case{"value.absent", 3, "an absent value is read as the zero value", func(p *probe) error {
			return p.reads(object{}, object{"type": "absent", "string": "", "int": 0, "float": 0.0, "bool": false, "len": 0})
		}},
		Case{"value.nil-reads", 3, "nil is read as the zero value", func(p *probe) error {
			return p.reads(object{"value": nil}, object{"type": "nil", "string": "", "int": 0, "bool": false, "len": 0})
		}},
		Case{"value.other-type", 3, "a value of another type is read as the zero value", func(p *probe) error {
			return p.reads(object{"value": "text"}, object{"type": "string", "string": "text", "int": 0, "bool": false})
		}},
		Case{"object.deepest", 3, "an object that nests 128 deep by itself is taken", func(p *probe) error {
			spec := object{"deep": nested(abi.MaxDepth - 2), "value": 1}
			return p.reads(spec, object{"type": "int", "int": 1})
		}},
		Case{"object.empty", 4, "an object that is an empty map is there", func(p *probe) error {
			r, err := p.run(abi.ExportReconcile, ask(object{}))
			return first(err, same("steps", len(r.steps), 0))
		}},
		Case{"object.metadata-only", 4, "an object with nothing but its metadata", func(p *probe) error {
			o := caseObject(nil)
			delete(o, "spec")
			r, err := p.run(abi.ExportReconcile, ask(o))
			return first(err, same("steps", len(r.steps), 0))
		}},
	)
}

func nested(depth int) any {
	var v any = "bottom"
	for i := range depth {
		if i%2 == 0 {
			v = object{"k": v}
		} else {
			v = list{v}
		}
	}
	return v
}

func numbers(n int) list {
	out := make(list, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func wide(n int) object {
	out := object{}
	for i := range n {
		out["key-"+strconv.Itoa(i)] = int64(i)
	}
	return out
}

// valueCase expects a value to come back unchanged.
func valueCase(id, about string, value any) Case {
	return Case{id, 3, about, reports(do("echo", "value", value), "value", value)}
}

// reads compares the value at spec.value, read as several types.
func (p *probe) reads(spec, want object) error {
	var steps, kinds list
	for as := range want {
		kinds = append(kinds, as)
		steps = append(steps, do("read", "path", list{"spec", "value"}, "as", as))
	}
	spec["steps"] = steps
	r, err := p.run(abi.ExportReconcile, ask(caseObject(spec)))
	if err := counted(len(r.steps), len(steps), err); err != nil {
		return err
	}
	for i, as := range kinds {
		if err := same("read as "+as.(string), r.steps[i]["value"], want[as.(string)]); err != nil { //nolint:forcetypeassert // made above
			return err
		}
	}
	return nil
}

// numberCases are about limits of integers and floats.
func numberCases() []Case {
	ints := []int64{
		0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 32, 1<<53 - 1, 1<<53 + 1, math.MaxInt64,
		-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, -(1<<53 + 1), math.MinInt64,
	}
	cases := make([]Case, 0, 64)
	for _, i := range ints {
		cases = append(cases, numberCase(fmt.Sprintf("number.int.%d", i), fmt.Sprintf("the integer %d", i), i, object{"type": "int", "int": i}))
	}
	floats := []float64{0.5, -0.5, 1, 0.1, 1e21, -1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, 16777217.5, 1 << 62}
	for _, f := range floats {
		text := strconv.FormatFloat(f, 'g', -1, 64)
		cases = append(cases, numberCase("number.float."+text, "the float "+text, f, object{"type": "float", "float": f}))
	}
	return append(cases, Case{"number.float.minus-zero", 3, "the float -0 keeps its sign", func(p *probe) error {
		s, err := p.step(do("echo", "value", math.Copysign(0, -1)))
		f, ok := s["value"].(float64)
		if err == nil && (!ok || f != 0 || !math.Signbit(f)) {
			err = fmt.Errorf("echo: got %s, want -0", short(s["value"]))
		}
		return err
	}})
}

// numberCase expects a number to come back unchanged, and reads it in place.
func numberCase(id, about string, value any, want object) Case {
	return Case{id, 3, about, func(p *probe) error {
		return first(reports(do("echo", "value", value), "value", value)(p), p.reads(object{"value": value}, want))
	}}
}

// widthCases are about messages that do not have the shortest encoding.
func widthCases() []Case {
	type width struct {
		id   string
		raw  string
		want any
	}
	var cases []Case
	for _, w := range []width{
		{"uint8", "\xcc\x05", 5},
		{"uint16", "\xcd\x00\x05", 5},
		{"uint32", "\xce\x00\x00\x00\x05", 5},
		{"uint64", "\xcf\x00\x00\x00\x00\x00\x00\x00\x05", 5},
		{"uint64-max", "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", int64(math.MaxInt64)},
		{"int8", "\xd0\x05", 5},
		{"int16", "\xd1\x00\x05", 5},
		{"int32", "\xd2\x00\x00\x00\x05", 5},
		{"int64", "\xd3\x00\x00\x00\x00\x00\x00\x00\x05", 5},
		{"int8-negative", "\xd0\xff", -1},
		{"int16-negative", "\xd1\xff\xff", -1},
		{"int32-negative", "\xd2\xff\xff\xff\xff", -1},
		{"int64-negative", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff", -1},
		{"float32", "\xca\x3f\xc0\x00\x00", 1.5},
		{"float32-tiny", "\xca\x00\x00\x00\x01", float64(math.SmallestNonzeroFloat32)},
		{"float32-max", "\xca\x7f\x7f\xff\xff", float64(math.MaxFloat32)},
	} {
		kind := "int"
		if _, ok := w.want.(float64); ok {
			kind = "float"
		}
		cases = append(cases, numberCase("width."+w.id, "a number written as "+w.id, raw(w.raw), object{"type": kind, kind: w.want}))
	}
	for _, w := range []width{
		{"str8", "\xd9\x02hi", "hi"},
		{"str16", "\xda\x00\x02hi", "hi"},
		{"str32", "\xdb\x00\x00\x00\x02hi", "hi"},
		{"array16", "\xdc\x00\x01\xa2hi", list{"hi"}},
		{"array32", "\xdd\x00\x00\x00\x01\xa2hi", list{"hi"}},
		{"map16", "\xde\x00\x01\xa2hi\x01", object{"hi": 1}},
		{"map32", "\xdf\x00\x00\x00\x01\xd9\x02hi\x01", object{"hi": 1}},
	} {
		cases = append(cases, valueCase("width."+w.id, "a value with the head "+w.id, raw(w.raw)))
	}
	return cases
}
