// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// FuzzCursor: for any bytes, reading ends, and a value that another library can read is skipped completely.
func FuzzCursor(f *testing.F) {
	for _, v := range []any{
		nil, true, -1, 1 << 40, 1.5, "text",
		map[string]any{"a": []any{1, "b", nil}, "b": string(bytes.Repeat([]byte("x"), 300))},
		make([]int, 20),
		map[string]int{},
	} {
		b, err := msgpack.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := At(b)
		value := c.Value()
		if c.OK() != (value != nil) || c.OK() && len(value)+len(c.Rest()) != len(b) {
			t.Fatalf("%x: %v, %x and %x", b, c.OK(), value, c.Rest())
		}
		c = At(b)
		for range c.MapLen() {
			if key := c.Text(); !bytes.Contains(b, key) {
				t.Fatalf("%x: key %x", b, key)
			}
			c.Skip()
		}
		if FormOf(b) == Map && c.OK() && !bytes.HasSuffix(b, c.Rest()) {
			t.Fatalf("%x: rest %x", b, c.Rest())
		}
	})
}

func TestCursor_PassesOverWhatIsNotAskedFor(t *testing.T) {
	b, err := msgpack.Marshal([]any{[]int{1, 2}, nil, "a", 7})
	if err != nil {
		t.Fatal(err)
	}
	c := At(b)
	if n := c.ArrayLen(); n != 4 || c.Text() != nil || c.OK() {
		t.Errorf("a list is read as a text: %v", c)
	}
	c = At(b)
	c.ArrayLen()
	c.Skip()
	if n := c.MapLen(); n != 0 || string(c.Text()) != "a" || !c.OK() {
		t.Errorf("nil is no empty map: %v", c)
	}
	if c.Skip(); !c.OK() || len(c.Rest()) != 0 {
		t.Errorf("%x are left", c.Rest())
	}
	if c.Skip(); c.OK() {
		t.Error("something is passed over at the end")
	}
}
