// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// podMaker creates pods that are as different as those of a cluster: names, uids, hashes, addresses and times are
// unique, and everything else comes from one of its templates.
type podMaker struct {
	*rand.Rand

	templates []string // 0: each pod has its own
}

func newPodMaker(seed uint64, templates int) *podMaker {
	m := &podMaker{Rand: rand.New(rand.NewPCG(seed, 1))}
	for range templates {
		m.templates = append(m.templates, m.template())
	}
	return m
}

func (m *podMaker) hex(n int) string {
	b := make([]byte, n/2)
	for i := range b {
		b[i] = byte(m.UintN(256))
	}
	return hex.EncodeToString(b)
}

func (m *podMaker) uid() string {
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", m.hex(8), m.hex(4), m.hex(4)[1:], m.hex(4)[1:], m.hex(12))
}

func (m *podMaker) word(n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[m.IntN(len(letters))]
	}
	return string(b)
}

// template is a Deployment: its app, namespace, image, variables.
func (m *podMaker) template() string {
	hash, env := m.word(10), ""
	for range m.IntN(8) {
		env += fmt.Sprintf(`{"name":"%s_%s","value":"%s"},`, strings.ToUpper(m.word(4)), strings.ToUpper(m.word(5)), m.word(3+m.IntN(20)))
	}
	return strings.NewReplacer(
		"storefront-6d4cf56db6-NUMBER", "storefront-"+hash+"-SUFFIX", "6d4cf56db6", hash, "storefront-REPLICASET", "storefront-"+hash,
		"worker-REPLICASET", "worker-NODE", "10.244.3.NUMBER", "10.244.POD", "1f0b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d", m.uid(),
		"0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9", m.hex(64), `"env":[`, `"env":[`+env,
		"storefront", m.word(6+m.IntN(8)), "shop", m.word(4+m.IntN(8)), "3.14.1", fmt.Sprintf("%d.%d.%d", m.IntN(9), m.IntN(30), m.IntN(20)),
	).Replace(podTemplate)
}

// pod returns the JSON of the next pod.
func (m *podMaker) pod(version int) string {
	var template string
	if m.templates == nil {
		template = m.template()
	} else {
		template = m.templates[m.IntN(len(m.templates))]
	}
	born := time.Date(2026, 1, 1, 0, 0, m.IntN(300*86400), 0, time.UTC)
	after := func(seconds int) string { return born.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339) }
	return strings.NewReplacer(
		"SUFFIX", m.word(5), "UID", m.uid(), "RESOURCEVERSION", fmt.Sprint(version), "NODE", fmt.Sprint(m.IntN(200)),
		"POD", fmt.Sprintf("%d.%d", m.IntN(256), m.IntN(256)), "10.0.3.17", fmt.Sprintf("10.0.%d.%d", m.IntN(4), m.IntN(256)), "x7k2p", m.word(5),
		"2026-05-04T08:15:28Z", after(-2), "2026-05-04T08:15:30Z", after(0), "2026-05-04T08:15:32Z", after(2+m.IntN(9)), "2026-05-04T08:15:33Z", after(11+m.IntN(9)),
		"9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0", m.hex(64),
	).Replace(template)
}

func packText(tb testing.TB, js string) *reflector.Object {
	tb.Helper()
	o, err := reflector.PackJSON([]byte(js), reflector.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// configMap has random, incompressible content of a given size.
func (m *podMaker) configMap(name string, version, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789+/ABCDEFGHIJKLMNOPQRSTUVWXYZ"[m.IntN(64)]
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"uid":"u","resourceVersion":"%d"},"data":{"a":%q}}`, name, version, b)
}

// fillCompressed returns the store of a first list of n objects, filled like by a watch, and its Compressor.
func fillCompressed(tb testing.TB, n int, object func(i int) *reflector.Object) (*reflector.Writer, *reflector.Compressor) {
	tb.Helper()
	w, c := reflector.NewWriter(), &reflector.Compressor{}
	for i := range n {
		o := object(i)
		c.Compress(o)
		w.Apply(o, func(reflector.Event) {})
	}
	lookAll(c, w.Store())
	return w, c
}

// lookAll is a round of compression. It returns the number of compressed objects.
func lookAll(c *reflector.Compressor, s *reflector.Store) (compressed int) {
	for _, o := range s.List() {
		if c.Look(o) > 0 {
			compressed++
		}
	}
	return compressed
}

// Whatever was compressed, read and changed before, reading objects gives the same result as without compression.
func TestCompressor_ObjectsReadAsBefore(t *testing.T) {
	for seed := range uint64(4) {
		m := newPodMaker(seed, 5)
		c := &reflector.Compressor{}
		objects, model := make([]*reflector.Object, 600), make([]string, 600)
		compressed := 0
		for step := range 6000 {
			switch i := m.IntN(len(objects)); {
			case objects[i] == nil || m.IntN(4) == 0:
				model[i] = m.pod(step)
				if m.IntN(20) == 0 {
					model[i] = m.configMap("a", step, m.IntN(10_000))
				}
				if objects[i] = packText(t, model[i]); m.IntN(2) == 0 {
					c.Compress(objects[i])
				}
			case m.IntN(2) == 0:
				if c.Look(objects[i]) > 0 {
					compressed++
				}
			default:
				readsAs(t, objects[i], packText(t, model[i]))
			}
		}
		for i, o := range objects {
			readsAs(t, o, packText(t, model[i]))
		}
		if compressed < 100 {
			t.Errorf("seed %d: %d objects were compressed: too few for this test", seed, compressed)
		}
	}
}

// readsAs compares everything that can be read from the bytes of two objects.
func readsAs(t *testing.T, got, want *reflector.Object) {
	t.Helper()
	type reads struct {
		Kind, APIVersion, Port  string
		Annotations, Finalizers []string
		Alike                   bool
	}
	read := func(o *reflector.Object) reads {
		r := reads{Kind: o.Kind(), APIVersion: o.APIVersion(), Finalizers: slices.Collect(o.Finalizers()), Alike: o.MapsAlike(want)}
		for k, v := range o.Annotations() {
			r.Annotations = append(r.Annotations, k+"="+v)
		}
		r.Port, _ = o.Annotation("prometheus.io/port")
		return r
	}
	if diff := cmp.Diff(read(want), read(got)); diff != "" {
		t.Fatal(diff)
	}
	if !bytes.Equal(got.Msgpack(), want.Msgpack()) {
		t.Fatalf("object[%s] is %d bytes, want %d, or others", got.Ref(), len(got.Msgpack()), len(want.Msgpack()))
	}
}

// The goal of compression: a pod of 4 KiB of JSON takes 1.5 KiB of heap, even if no two belong to the same Deployment,
// and even during the first list.
func TestCompressor_PodOf4KiBTakes1500Bytes(t *testing.T) {
	const n = 4000
	for _, templates := range []int{0, 20} {
		m := newPodMaker(1, templates)
		before, peak := heap(), uint64(0)
		w, c := fillCompressed(t, n, func(i int) *reflector.Object {
			if i%500 == 499 {
				peak = max(peak, heap()-before)
			}
			return packText(t, m.pod(i))
		})
		steady := heap() - before
		t.Logf("%d templates: %d B a pod; msgpack %d", templates, steady/n, w.Store().Bytes()/n)
		if steady/n > 1500 {
			t.Errorf("%d templates: %d B of heap a pod, want at most 1500", templates, steady/n)
		}
		if peak > steady*3/2 {
			t.Errorf("%d templates: the list takes %d B at its peak, and then %d", templates, peak, steady)
		}
		if lookAll(c, w.Store()) < n*9/10 {
			t.Error("not compressed")
		}
	}
}

// An object that is read between looks stays uncompressed, one that is read often becomes uncompressed, and a single
// read of each object, as by a resync, changes nothing.
func TestCompressor_WhatIsReadOftenIsPlain(t *testing.T) {
	m := newPodMaker(1, 5)
	w, c := fillCompressed(t, 1000, func(i int) *reflector.Object { return packText(t, m.pod(i)) })
	all := w.Store().List()
	isPlain := func(o *reflector.Object) bool { // two reads of an uncompressed object give the same bytes
		first, second := o.Msgpack(), o.Msgpack()
		return &first[0] == &second[0]
	}
	for _, o := range all {
		o.Msgpack()
	}
	if n := lookAll(c, w.Store()); n != len(all) {
		t.Fatalf("after one read, %d of %d objects are compressed", n, len(all))
	}
	hot := all[0]
	hot.Msgpack()
	hot.Msgpack()
	for range 3 {
		if !isPlain(hot) {
			t.Fatal("an object that is read often is compressed")
		}
		if c.Look(hot) > 0 {
			t.Fatal("an object that was read since the last look was compressed")
		}
	}
	c.Look(hot)
	if c.Look(hot) == 0 {
		t.Error("an object that is no longer read stays plain")
	}
}

// Objects that are incompressible, tiny or large, or have no resourceVersion stay uncompressed, except for the sample.
func TestCompressor_LeavesOthersPlain(t *testing.T) {
	m := newPodMaker(1, 5)
	for name, object := range map[string]func(i int) string{
		"random":  func(i int) string { return m.configMap(fmt.Sprint("n", i), i, 3000) },
		"tiny":    func(i int) string { return m.configMap("a", i, 100) },
		"large":   func(i int) string { return m.configMap("a", i, 9<<10) },
		"unnamed": func(i int) string { return strings.ReplaceAll(m.pod(i), `"resourceVersion"`, `"ignored"`) },
	} {
		w, c := fillCompressed(t, 2000, func(i int) *reflector.Object { return packText(t, object(i)) })
		for range 3 {
			if n := lookAll(c, w.Store()); n > 50 || n > 0 && name != "random" {
				t.Errorf("%s: %d objects are compressed", name, n)
			}
		}
	}
}

// A list whose first part has nothing in common with the rest does not prevent the compression of the rest.
func TestCompressor_LearnsWhatComesLater(t *testing.T) {
	m := newPodMaker(1, 5)
	w, c := fillCompressed(t, 4000, func(i int) *reflector.Object {
		if i < 1000 {
			return packText(t, m.configMap(fmt.Sprint("n", i), i, 3000))
		}
		return packText(t, m.pod(i))
	})
	if n := lookAll(c, w.Store()); n < 2900 {
		t.Errorf("%d of 3,000 pods are compressed", n)
	}
}

// Readers concurrent with rounds and lists, under the race detector.
func TestCompressor_HammerReads(t *testing.T) {
	m := newPodMaker(1, 5)
	var texts []string
	for i := range 500 {
		texts = append(texts, m.pod(i))
	}
	w, c := fillCompressed(t, len(texts), func(i int) *reflector.Object { return packText(t, texts[i]) })
	all := w.Store().List()
	want := map[*reflector.Object][]byte{}
	for _, o := range all {
		want[o] = bytes.Clone(o.Msgpack())
	}
	stop := make(chan struct{})
	var rounds, readers sync.WaitGroup
	for range 2 {
		rounds.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					lookAll(c, w.Store())
				}
			}
		})
	}
	for part := range slices.Chunk(all, len(all)/4) {
		readers.Go(func() {
			for range 20 {
				for i, o := range part {
					for range i % 4 {
						if !bytes.Equal(o.Msgpack(), want[o]) {
							t.Errorf("object[%s] reads as another", o.Ref())
							return
						}
					}
					o.HasFinalizer("a")
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	rounds.Wait()
}

// BenchmarkCompressor is the cost of compressing, and of reading, one of many different pods.
func BenchmarkCompressor(b *testing.B) {
	m := newPodMaker(1, 0)
	w, c := fillCompressed(b, 2000, func(i int) *reflector.Object { return packText(b, m.pod(i)) })
	all := w.Store().List()
	fresh := packText(b, m.pod(1))
	b.Run("compress", func(b *testing.B) {
		for b.Loop() { // two reads decompress it
			fresh.Msgpack()
			fresh.Msgpack()
			c.Look(fresh)
			if c.Look(fresh) == 0 {
				b.Fatal("plain")
			}
		}
	})
	read := func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			o := all[i%len(all)]
			o.Msgpack()
			c.Look(o)
		}
	}
	b.Run("read", read)
	var env strings.Builder
	for i := range 100 { // up to 8 KB
		fmt.Fprintf(&env, `{"name":"VARIABLE_%d","value":"the value is %s"},`, i, m.word(4))
	}
	all = []*reflector.Object{packText(b, strings.Replace(m.pod(1), `"env":[`, `"env":[`+env.String(), 1))}
	if c.Look(all[0]) == 0 {
		b.Fatalf("%d bytes are not compressed", len(all[0].Msgpack()))
	}
	b.Run("read-large", read)
}

// BenchmarkCompressor_BytesPerPod is like BenchmarkStore_BytesPerPod, for pods of some templates, without and with
// compression; 0 means that each pod has its own.
func BenchmarkCompressor_BytesPerPod(b *testing.B) {
	const n = 10_000
	for _, templates := range []int{1, 20, 300, 0} {
		for _, value := range []string{"off", "on"} {
			b.Run(fmt.Sprintf("%d/%s", templates, value), func(b *testing.B) {
				for b.Loop() {
					m := newPodMaker(1, templates)
					before := heap()
					w, c := reflector.NewWriter(), &reflector.Compressor{}
					for i := range n {
						o := packText(b, m.pod(i))
						if value == "on" {
							c.Compress(o)
						}
						w.Apply(o, func(reflector.Event) {})
					}
					if value == "on" {
						lookAll(c, w.Store())
					}
					b.ReportMetric(float64(heap()-before)/n, "B/object")
					b.ReportMetric(float64(w.Store().Bytes())/n, "msgpack-B/object")
					goruntime.KeepAlive(c)
				}
			})
		}
	}
}
