// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestReader_KeepsTheFirstErrorAndItsPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes string
		read  func(*Reader)
		want  string
	}{
		"no byte":          {"", func(r *Reader) { r.Byte() }, "byte 0x64: " + ErrTruncated.Error()},
		"after the first":  {"\x01", func(r *Reader) { r.Skip(2); r.Failf("second") }, "byte 0x64: " + ErrTruncated.Error()},
		"count that lies":  {"\x05ab", func(r *Reader) { r.Block() }, "byte 0x65: " + ErrTruncated.Error()},
		"long number":      {"\xff\xff\xff\xff\x7f", func(r *Reader) { r.U32() }, "byte 0x69: number is longer than 32 bits"},
		"endless number":   {"\x80\x80\x80", func(r *Reader) { r.LEB(2) }, "byte 0x66: number is longer than 2 bytes"},
		"name":             {"\x01\xff", func(r *Reader) { r.Name() }, "byte 0x66: name is not UTF-8"},
		"rest":             {"ab", func(r *Reader) { r.Byte(); _ = r.End() }, "byte 0x65: 1 bytes too many"},
		"64-bit":           {"\x04\x01", func(r *Reader) { r.Limits() }, "byte 0x65: 64-bit memories and tables are not supported"},
		"entry of entries": {"\x01\x02\x00", func(r *Reader) { r.Each(func(r *Reader) { r.Each(func(r *Reader) { r.Byte() }) }) }, "byte 0x66: entry 0: " + ErrTruncated.Error()},
		"entry": {"\x02\x00", func(r *Reader) {
			r.Each(func(r *Reader) { b := r.Block(); r.Fail(b.Err()); r.Failf("bad") })
		}, "byte 0x65: " + ErrTruncated.Error()},
	} {
		r := NewReader([]byte(tt.bytes), 100)
		tt.read(&r)
		if err := r.Err(); err == nil || err.Error() != tt.want || r.OK() || r.Left() != 0 || r.Byte() != 0 {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestReader_ReadsWhatIsAppended(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		u := uint32(v) //nolint:gosec // bits
		r := NewReader(AppendName(AppendS64(AppendU32(nil, u), v), "né"), 0)
		if gotU, gotS, name := r.U32(), r.LEB(10), r.Name(); gotU != u || gotS != v || name != "né" || r.End() != nil {
			t.Errorf("%d, %d, %q, %v: want %d, %d", gotU, gotS, name, r.Err(), u, v)
		}
	}
	module := AppendSection(AppendSection([]byte(Header), SectionType, []byte{0}), SectionCustom, AppendName(nil, "x"))
	sections, err := Sections(module)
	if err != nil || len(sections) != 2 || sections[0].String() != "type" || sections[1].String() != "custom x" || sections[1].End != len(module) {
		t.Errorf("%v, %v", sections, err)
	}
	if _, err := Sections(module[:len(module)-1]); !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "section custom at byte 11") {
		t.Error(err)
	}
}

// FuzzSections: whatever the bytes are, sections lie side by side in them, and
// reading their vectors ends.
func FuzzSections(f *testing.F) {
	f.Add([]byte(Header))
	f.Add(AppendSection([]byte(Header), SectionCode, []byte{2, 1, 2, 0xff}))
	f.Fuzz(func(t *testing.T, b []byte) {
		sections, _ := Sections(b)
		end := len(Header)
		for i := range sections {
			s := &sections[i]
			if s.Start != end || s.End <= s.Start || s.End > len(b) || s.String() == "" {
				t.Fatalf("section %d: %d to %d after %d", i, s.Start, s.End, end)
			}
			end = s.End
			r := s.Body
			r.Each(func(r *Reader) { r.U32(); r.LEB(10); r.Name(); r.Limits() })
			if err := r.End(); err == nil && r.At() != s.End {
				t.Fatalf("read to %d of %d", r.At(), s.End)
			}
		}
	})
}
