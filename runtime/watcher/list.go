// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// listReader reads a list of objects from a stream. It packs each object as soon as it has arrived, so that the complete JSON of a large
// list is never in memory.
type listReader struct {
	in      *jsonReader
	decoder *decoder
	listing *listing // nil if the objects are not stored
	list    metainternalversion.List
	untyped []untyped

	apiVersion, kind string
	has              bool // there is an items member, possibly empty
}

// untyped is an item without apiVersion or kind that came before those of the list, from which its own are derived.
type untyped struct {
	index int
	js    []byte
}

// readList reads the body of a list. Its items are *reflector.Object; those that cannot be packed are skipped, or replaced by their last
// known state. If the objects are not stored, listing is nil.
func readList(body io.Reader, d *decoder, listing *listing) (*metainternalversion.List, error) {
	in := bufio.NewReaderSize(body, 64<<10)
	if start, _ := in.Peek(len(protobufMagic)); bytes.Equal(start, protobufMagic) {
		return readProtobufList(in, d, listing)
	}
	l := &listReader{in: newJSONReader(in, 64<<10), decoder: d, listing: listing}
	err := l.read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errCutList
	case err != nil:
		return nil, fmt.Errorf("list: %w", err)
	}
	return &l.list, nil
}

func (l *listReader) read() error {
	if err := l.members(); err != nil {
		return err
	}
	switch c, err := l.in.next(); {
	case err == nil:
		return fmt.Errorf("want its end, got %q", c)
	case !errors.Is(err, io.EOF):
		return err
	}
	// Some responses are not lists, and must not be treated as empty lists.
	if l.kind == "" || !l.has && !strings.HasSuffix(l.kind, "List") {
		return fmt.Errorf("the answer is a %q of version %q", l.kind, l.apiVersion)
	}
	for _, u := range l.untyped {
		o, err := l.item(u.js)
		if err != nil {
			return err
		}
		if o != nil {
			l.list.Items[u.index] = o
		}
	}
	return nil
}

// members reads the members of the list.
func (l *listReader) members() error {
	return l.elements('{', '}', func() error {
		var key string
		if err := l.decode(&key); err != nil {
			return err
		}
		if err := l.in.skip(':'); err != nil {
			return err
		}
		switch key {
		case "kind":
			return l.decode(&l.kind)
		case "apiVersion":
			return l.decode(&l.apiVersion)
		case "metadata":
			var meta metav1.ListMeta
			err := l.decode(&meta)
			l.list.ResourceVersion, l.list.Continue = meta.ResourceVersion, meta.Continue
			return err
		case "items":
			l.has = true
			return l.items()
		}
		return l.decode(new(stdjson.RawMessage))
	})
}

// elements reads the elements between open and end, separated by commas.
func (l *listReader) elements(open, end byte, read func() error) error {
	if err := l.in.skip(open); err != nil {
		return err
	}
	for n := 0; ; n++ {
		c, err := l.in.next()
		if err != nil {
			return err
		}
		if c == end {
			return l.in.skip(end)
		}
		if n > 0 {
			if err := l.in.skip(','); err != nil {
				return err
			}
		}
		if err := read(); err != nil {
			return err
		}
	}
}

// decode decodes the next value.
func (l *listReader) decode(into any) error {
	b, err := l.in.value()
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

func (l *listReader) items() error {
	l.list.Items, l.untyped = []k8sruntime.Object{}, nil
	if c, err := l.in.next(); err == nil && c == 'n' {
		return l.decode(&l.list.Items) // null
	}
	return l.elements('[', ']', func() error {
		js, err := l.in.value()
		if err != nil {
			return err
		}
		o, err := l.item(js)
		if err != nil || o == nil {
			return err
		}
		if (l.kind == "" || l.apiVersion == "") && (o.Kind() == "" || o.APIVersion() == "") {
			l.untyped = append(l.untyped, untyped{len(l.list.Items), bytes.Clone(js)})
		}
		l.list.Items = append(l.list.Items, o)
		return nil
	})
}

// item packs one item; it returns nil to skip it. Items of built-in kinds have no type of their own in a list: it is derived from that of
// the list.
func (l *listReader) item(js []byte) (*reflector.Object, error) {
	opts := l.decoder.options
	if opts.Kind == "" && l.kind != "" {
		opts.APIVersion, opts.Kind, opts.TypeIfMissing = l.apiVersion, strings.TrimSuffix(l.kind, "List"), true
	}
	o, err := l.decoder.decode(js, opts)
	if err != nil {
		return nil, fmt.Errorf("item %d: %w", len(l.list.Items), err)
	}
	return l.decoder.listed(o, l.listing)
}
