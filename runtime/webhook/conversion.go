// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// Bounds of one call of a backend. The objects of a request are divided into batches, up to batchesAtOnce of which run concurrently.
const (
	batchObjects  = 200
	batchBytes    = 1 << 20 // a quarter of a message: conversion may make objects larger
	batchesAtOnce = 4
)

// bookkeeping is about the memory that a request takes for each of its objects, in addition to their bytes.
const bookkeeping = 100

// conversion is a ConversionReview in progress.
type conversion struct {
	target

	id, desired string
	kind        string   // of all objects
	objects     [][]byte // of the request, in msgpack
	converted   [][]byte // their JSON in the desired version, in the same order
	memory      *lease
}

// convert answers a ConversionReview, of which b is the msgpack. An object that cannot be converted is an answer, too.
func (s *Server) convert(ctx context.Context, to []target, b []byte, memory *lease) ([][]byte, error) {
	r, err := readReview(b, "ConversionReview", "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
	if err != nil {
		return nil, err
	}
	f := &fields{b: r.request, path: "request."}
	c := &conversion{id: f.text("uid"), desired: f.text("desiredAPIVersion"), memory: memory}
	list := f.find("objects", packed.Array)
	if f.err == nil && (c.id == "" || c.desired == "") {
		f.err = refuse(http.StatusBadRequest, "request.uid and request.desiredAPIVersion: are required")
	}
	if f.err != nil {
		return nil, f.err
	}
	if err := c.read(list); err != nil {
		return nil, err
	}
	result := metav1.Status{Status: metav1.StatusSuccess}
	if err := c.run(ctx, s, to); err != nil {
		if own, ok := errors.AsType[*refusal](err); ok {
			return nil, own
		}
		message := text.Ends(text.Printable(strings.ToValidUTF8(err.Error(), "")), text.MaxError)
		s.cfg.Logger.Warn("conversion failed", "id", c.id, "kind", c.kind, "to", text.Shorten(c.desired, 200), "error", message)
		result, c.converted = metav1.Status{Status: metav1.StatusFailure, Message: message}, nil
	}
	return c.answer(r, &result)
}

// read divides the list of a request into objects.
func (c *conversion) read(list []byte) error {
	cursor := packed.At(list)
	n := 0
	if list != nil {
		n = cursor.ArrayLen()
	}
	if err := c.memory.take(int64(n) * bookkeeping); err != nil {
		return err
	}
	c.objects, c.converted = make([][]byte, n), make([][]byte, n)
	for i := range c.objects {
		c.objects[i] = cursor.Value()
		h := headOf(c.objects[i])
		if i == 0 {
			c.kind = h.kind
		}
		if h.kind == "" || h.kind != c.kind || h.meta == nil {
			return refuse(http.StatusBadRequest, "request.objects[%d]: is not an object with metadata of the same kind as the others", i)
		}
	}
	return nil
}

// run converts all objects.
func (c *conversion) run(ctx context.Context, s *Server, to []target) error {
	if len(c.objects) == 0 {
		return nil
	}
	group, version, ok := strings.Cut(c.desired, "/")
	i := slices.IndexFunc(to, func(t target) bool {
		return slices.ContainsFunc(t.routes.Conversions, func(of abi.Conversions) bool {
			return of.Group == group && of.Kind == c.kind && (len(of.Versions) == 0 || slices.Contains(of.Versions, version))
		})
	})
	if !ok || i < 0 {
		return fmt.Errorf("no module converts objects of kind %.200s to %.200s", c.kind, c.desired)
	}
	c.target = to[i]
	leave, err := c.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	start := time.Now()
	batches, err := c.divide(group)
	if err != nil {
		return err
	}
	if len(batches) == 1 { // usually an object
		err = c.batch(ctx, batches[0])
	} else {
		err = c.concurrently(ctx, s, batches)
	}
	s.cfg.Metrics.objects.WithLabelValues(c.share.prefix + ConvertPath).Observe(time.Since(start).Seconds() / float64(len(c.objects)))
	return err
}

// divide returns the objects of each batch, by their index. Objects that have the desired version already pass unchanged.
func (c *conversion) divide(group string) (batches [][]int, err error) {
	most := min(batchObjects, (len(c.objects)+batchesAtOnce-1)/batchesAtOnce)
	if len(c.objects) < 2*batchesAtOnce {
		most = len(c.objects) // not worth several calls
	}
	var batch []int
	size := 0
	for i, o := range c.objects {
		h := headOf(o)
		if of, _, _ := strings.Cut(h.apiVersion, "/"); of != group {
			return nil, fmt.Errorf("%s: is of %.200s, which is not a version of group %.200s", h.describe(), h.apiVersion, group)
		}
		if h.apiVersion == c.desired {
			c.converted[i], _ = transcode.AppendJSON(nil, o) // always valid
			continue
		}
		if len(batch) > 0 && (len(batch) == most || size+len(o) > batchBytes) {
			batches, batch, size = append(batches, batch), nil, 0
		}
		batch, size = append(batch, i), size+len(o)
	}
	return append(batches, batch), nil
}

// concurrently converts several batches, until one fails.
func (c *conversion) concurrently(ctx context.Context, s *Server, batches [][]int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan []int)
	var wg sync.WaitGroup
	for range min(batchesAtOnce, len(batches)) {
		wg.Go(func() {
			for batch := range next {
				if err := s.guard(func() error { return c.batch(ctx, batch) }); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, batch := range batches {
		if ctx.Err() != nil {
			break
		}
		next <- batch
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// batch converts some of the objects by one call.
func (c *conversion) batch(ctx context.Context, indexes []int) error {
	if len(indexes) == 0 {
		return nil
	}
	call := &abi.Conversion{ID: c.id, Controller: c.controller, To: c.desired}
	for _, i := range indexes {
		call.Objects = append(call.Objects, withoutManagedFields(c.objects[i]))
	}
	in := slices.Clone(call.Objects)
	work := 2 * total(in) // the copies, and the message that has them
	if err := c.memory.take(work); err != nil {
		return err
	}
	defer func() { c.memory.give(work) }()
	out, err := c.Convert(ctx, call)
	if err == nil && len(out) != len(in) {
		err = fmt.Errorf("the module returned %d objects for %d", len(out), len(in))
	}
	if err != nil {
		first := headOf(in[0])
		what := first.describe()
		if len(in) > 1 {
			what = fmt.Sprintf("%s or one of the next %d", what, len(in)-1)
		}
		return fmt.Errorf("%s: convert to %s: %w", what, c.desired, err)
	}
	if err := c.memory.take(total(out)); err != nil {
		return err
	}
	work += total(out)
	for k, i := range indexes {
		js, err := restore(in[k], out[k], c.desired)
		if err == nil {
			err = c.memory.take(int64(len(js)))
		}
		if err != nil {
			h := headOf(in[k])
			return fmt.Errorf("%s: convert to %s: %w", h.describe(), c.desired, err)
		}
		c.converted[i] = js
	}
	return nil
}

// total returns the number of bytes of a list.
func total(list [][]byte) (n int64) {
	for _, b := range list {
		n += int64(len(b))
	}
	return n
}

// answer returns the JSON of the review, in parts: the list of objects is not copied.
func (c *conversion) answer(r review, result *metav1.Status) ([][]byte, error) {
	status, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	id, err := json.Marshal(c.id)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, 0, 2*len(c.converted)+2)
	parts = append(parts, fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"response":{"uid":%s,"convertedObjects":[`, r.kind, r.apiVersion, id))
	for i, js := range c.converted {
		if i > 0 {
			parts = append(parts, comma)
		}
		parts = append(parts, js)
	}
	return append(parts, fmt.Appendf(nil, `],"result":%s}}`, status)), c.memory.resize(total(c.converted))
}

var comma = []byte(",")
