// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
)

// maxField bounds a field that is read as a whole: an object or its metadata. It is far more than etcd can store.
const maxField = 64 << 20

// readProtobufList is readList for protobuf. It also packs each object as soon as it has arrived.
func readProtobufList(in *bufio.Reader, d *decoder, listing *listing) (*metainternalversion.List, error) {
	_, _ = in.Discard(len(protobufMagic)) // the caller has checked it
	list := &metainternalversion.List{Items: []k8sruntime.Object{}}
	var k *kind
	complete := false
	err := (&message{in: in, left: -1}).each(func(num protowire.Number, m *message) error {
		if num == 1 {
			typeMeta, err := m.bytes()
			if err != nil {
				return err
			}
			of, err := kindOf(typeMeta)
			if err == nil {
				k, err = itemKind(of)
			}
			if err == nil && k.table == nil {
				return d.notRead(k) // even for an empty list: a later event would end the watch
			}
			return err
		}
		if num == 2 {
			if k == nil {
				return fmt.Errorf("%w: a list without a kind", errProtobuf)
			}
			complete = true
			return readItems(m, list, k, d, listing)
		}
		return nil
	})
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err == nil && !complete:
		return nil, errCutList
	case err != nil:
		return nil, fmt.Errorf("list: %w", err)
	}
	return list, nil
}

// itemKind returns the kind of the items of a list.
func itemKind(list *kind) (*kind, error) {
	name, ok := strings.CutSuffix(list.name, "List")
	if !ok {
		return nil, fmt.Errorf("the answer is a %q of version %q", list.name, list.apiVersion)
	}
	return newKind("", list.apiVersion, name), nil
}

func readItems(m *message, list *metainternalversion.List, k *kind, d *decoder, listing *listing) error {
	return m.each(func(num protowire.Number, m *message) error {
		if num != 1 && num != 2 {
			return nil
		}
		b, err := m.bytes()
		if err != nil {
			return err
		}
		if num == 1 {
			var meta metav1.ListMeta
			err := meta.Unmarshal(b)
			list.ResourceVersion, list.Continue = meta.ResourceVersion, meta.Continue
			return err
		}
		o, err := d.object(k, b)
		if err != nil {
			return fmt.Errorf("item %d: %w", len(list.Items), err)
		}
		item, err := d.listed(o, listing)
		if item != nil {
			list.Items = append(list.Items, item)
		}
		return err
	})
}

// message reads the fields of a message one by one, so that the complete message is never in memory.
type message struct {
	in   *bufio.Reader
	left int64        // bytes left; negative if the message extends to the end of in
	buf  bytes.Buffer // the result of bytes
}

// each calls do for each length-delimited field. It skips what do does not read.
func (m *message) each(do func(num protowire.Number, field *message) error) error {
	field := &message{in: m.in}
	for m.left != 0 {
		if _, err := m.in.Peek(1); m.left < 0 && errors.Is(err, io.EOF) {
			return nil
		}
		num, wire, err := m.tag()
		if err != nil {
			return err
		}
		if field.left, err = m.size(wire); err != nil {
			return err
		}
		if m.left >= 0 {
			if m.left -= field.left; m.left < 0 {
				return errProtobuf
			}
		}
		if wire == protowire.BytesType {
			if err := do(num, field); err != nil {
				return err
			}
		}
		if _, err := io.CopyN(io.Discard, m.in, field.left); err != nil {
			return err
		}
	}
	return nil
}

func (m *message) tag() (protowire.Number, protowire.Type, error) {
	tag, err := m.varint()
	num, wire := protowire.DecodeTag(tag)
	if err == nil && num < 1 {
		err = errProtobuf
	}
	return num, wire, err
}

// size returns the size of a field's value.
func (m *message) size(wire protowire.Type) (int64, error) {
	switch wire {
	case protowire.VarintType:
		_, err := m.varint()
		return 0, err
	case protowire.Fixed32Type:
		return 4, nil
	case protowire.Fixed64Type:
		return 8, nil
	case protowire.BytesType:
		n, err := m.varint()
		if err == nil && n > math.MaxInt64 {
			err = errProtobuf
		}
		return int64(n), err //nolint:gosec // checked
	default:
		return 0, errProtobuf
	}
}

func (m *message) varint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c, err := m.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if m.left == 0 {
			return 0, errProtobuf
		}
		if m.left > 0 {
			m.left--
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, nil
		}
	}
	return 0, errProtobuf
}

// bytes reads the rest of the message. The result is valid until the next call.
func (m *message) bytes() ([]byte, error) {
	if m.left > maxField {
		return nil, fmt.Errorf("%w: a field of %d bytes", errProtobuf, m.left)
	}
	m.buf.Reset()
	_, err := io.CopyN(&m.buf, m.in, m.left)
	m.left = 0
	return m.buf.Bytes(), err
}
