// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/json"
)

// framer splits a watch stream into events. API servers write each as one line.
type framer struct{}

// NewFrameWriter implements runtime.Framer. It is never used.
func (framer) NewFrameWriter(w io.Writer) io.Writer { return w }

// NewFrameReader implements runtime.Framer.
func (framer) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	return &frames{body: body, in: newJSONReader(body, 8<<10)}
}

// frames reads one event at a time. At the first input that is not an event on one line, whether it is invalid or only unusual, client-go's
// own reader takes over permanently: it accepts all valid JSON, but is slower.
type frames struct {
	body  io.ReadCloser
	in    *jsonReader
	rest  []byte // unread part of the current event
	other io.Reader
}

// Read implements io.Reader as required by runtime.Framer: it returns the next event or, with io.ErrShortBuffer, the part of it that fits.
func (f *frames) Read(p []byte) (int, error) {
	if f.other != nil {
		return f.other.Read(p)
	}
	if len(f.rest) == 0 {
		frame, err := f.in.line()
		if err != nil {
			f.other = serializerjson.Framer.NewFrameReader(io.NopCloser(f.in.remainder()))
			return f.other.Read(p)
		}
		f.rest = frame
	}
	n := copy(p, f.rest)
	if f.rest = f.rest[n:]; len(f.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.body.Close() }

// eventDecoder splits an event into its type and the bytes of its object, which are slices of the event: client-go decodes the object
// before it reads on.
type eventDecoder struct{ readOnly }

// Decode implements runtime.Decoder, into a *metav1.WatchEvent.
func (eventDecoder) Decode(data []byte, _ *schema.GroupVersionKind, into k8sruntime.Object) (k8sruntime.Object, *schema.GroupVersionKind, error) {
	ev, ok := into.(*metav1.WatchEvent)
	if !ok {
		return nil, nil, fmt.Errorf("BUG: want to decode a watch event, not a %T", into)
	}
	if ev.Type, ev.Object.Raw, ok = splitEvent(data); ok {
		return ev, nil, nil
	}
	err := json.Unmarshal(data, ev)
	if err == nil && len(ev.Object.Raw) == 0 {
		err = errors.New("event without an object")
	}
	return ev, nil, err
}

// splitEvent is the fast path for {"type":"ADDED","object":{...}} with no other members. It only finds the end of the object.
func splitEvent(data []byte) (t string, object []byte, ok bool) {
	in := jsonReader{buf: data, err: io.EOF}
	var name []byte
	for n, open := range []byte("{,") {
		if in.skip(open) != nil {
			return "", nil, false
		}
		key, err := in.value()
		if err != nil || in.skip(':') != nil {
			return "", nil, false
		}
		value, err := in.value()
		switch {
		case err != nil:
			return "", nil, false
		case string(key) == `"type"` && value[0] == '"' && !bytes.Contains(value, []byte{'\\'}):
			name = value[1 : len(value)-1]
		case string(key) == `"object"`:
			object = value
		}
		if n == 1 && in.skip('}') != nil {
			return "", nil, false
		}
	}
	_, err := in.next()
	return string(name), object, name != nil && object != nil && errors.Is(err, io.EOF)
}
