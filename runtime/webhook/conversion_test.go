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
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

func conversionReview(to string, objects ...string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"c1","desiredAPIVersion":"` + to + `","objects":[` + strings.Join(objects, ",") + `]}}`
}

// convertedBy returns the result of a conversion, and the converted objects.
func convertedBy(t *testing.T, s *Server, body string) (metav1.Status, []string) {
	t.Helper()
	w := post(s, "/convert", body)
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK || review.Kind != "ConversionReview" || review.APIVersion != "apiextensions.k8s.io/v1" || review.Response.UID != "c1" {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	var objects []string
	for _, o := range review.Response.ConvertedObjects {
		objects = append(objects, string(o.Raw))
	}
	return review.Response.Result, objects
}

// TestConvert_KeepsOrderAndMetadata: many objects, of which some have the version already, are converted in batches. Their order and all
// metadata but labels and annotations remain.
func TestConvert_KeepsOrderAndMetadata(t *testing.T) {
	b := jobs()
	var calls atomic.Int64
	b.convert = func(_ context.Context, c *abi.Conversion) ([][]byte, error) {
		calls.Add(1)
		if c.ID != "c1" || c.Controller != "jobs" || c.To != "example.com/v2" {
			t.Errorf("%+v", c)
		}
		var out [][]byte
		for _, o := range c.Objects {
			m, err := abi.DecodeObject(o)
			if err != nil {
				t.Error(err)
			}
			meta := m["metadata"].(map[string]any)
			if meta["managedFields"] != nil || m["apiVersion"] != "example.com/v1" {
				t.Errorf("the module gets %v", m)
			}
			m["apiVersion"], m["spec"] = c.To, meta["name"]
			m["metadata"] = map[string]any{"name": meta["name"], "uid": meta["uid"], "labels": map[string]any{"new": "1"}, "annotations": nil, "finalizers": []any{"lost"}}
			o, err = abi.AppendValue(nil, m)
			if err != nil {
				t.Error(err)
			}
			out = append(out, o)
		}
		return out, nil
	}
	var objects, want []string
	for i := range 700 {
		version := 1 + i%7/6
		objects = append(objects, fmt.Sprintf(`{"apiVersion":"example.com/v%d","kind":"Job","metadata":{"name":"n%d","uid":"%d","managedFields":[{}],"annotations":{"old":"1"},"generation":3},"spec":1}`, version, i, i))
		if version == 2 {
			want = append(want, fmt.Sprintf(`{"apiVersion":"example.com/v2","kind":"Job","metadata":{"annotations":{"old":"1"},"generation":3,"managedFields":[{}],"name":"n%d","uid":"%d"},"spec":1}`, i, i))
			continue
		}
		want = append(want, fmt.Sprintf(`{"apiVersion":"example.com/v2","kind":"Job","metadata":{"generation":3,"name":"n%d","uid":"%d","labels":{"new":"1"}},"spec":"n%d"}`, i, i, i))
	}
	result, got := convertedBy(t, serverOf(b), conversionReview("example.com/v2", objects...))
	if result.Status != metav1.StatusSuccess || !slices.Equal(got, want) {
		t.Errorf("%+v, %.2000v", result, got)
	}
	if n := calls.Load(); n < batchesAtOnce {
		t.Errorf("%d calls", n)
	}
	if result, got := convertedBy(t, serverOf(b), conversionReview("example.com/v2")); result.Status != metav1.StatusSuccess || len(got) > 0 {
		t.Errorf("without an object: %+v, %v", result, got)
	}
}

// TestConvert_Fails: the result names the object and the reason.
func TestConvert_Fails(t *testing.T) {
	b := jobs()
	s := serverOf(b)
	changed := func(change func(o map[string]any)) func(context.Context, *abi.Conversion) ([][]byte, error) {
		return func(_ context.Context, c *abi.Conversion) ([][]byte, error) {
			out, err := setVersion(c)
			if err != nil {
				return nil, err
			}
			last := len(out) - 1
			o, err := abi.DecodeObject(out[last])
			if err != nil {
				return nil, err
			}
			change(o)
			out[last], err = abi.AppendValue(nil, o)
			return out, err
		}
	}
	meta := func(key string, value any) func(context.Context, *abi.Conversion) ([][]byte, error) {
		return changed(func(o map[string]any) { o["metadata"].(map[string]any)[key] = value })
	}
	for name, c := range map[string]struct {
		convert func(context.Context, *abi.Conversion) ([][]byte, error)
		want    string
	}{
		"version":       {changed(func(o map[string]any) { o["apiVersion"] = "example.com/v1" }), `Job[b/a]: convert to example.com/v2: the module returned apiVersion "example.com/v1", want "example.com/v2"`},
		"kind":          {changed(func(o map[string]any) { o["kind"] = "Task" }), `returned kind "Task", want "Job"`},
		"name":          {meta("name", "x"), `returned metadata.name "x", want "a"`},
		"namespace":     {meta("namespace", nil), `returned metadata.namespace "", want "b"`},
		"uid":           {meta("uid", "2"), `returned metadata.uid "2", want "1"`},
		"no metadata":   {changed(func(o map[string]any) { delete(o, "metadata") }), `returned metadata.name "", want "a"`},
		"labels":        {meta("labels", []any{}), "must be maps of texts"},
		"annotations":   {meta("annotations", map[string]any{"a": int64(1)}), "must be maps of texts"},
		"a key twice":   {func(context.Context, *abi.Conversion) ([][]byte, error) { return [][]byte{twice}, nil }, "a key appears twice"},
		"fewer objects": {func(context.Context, *abi.Conversion) ([][]byte, error) { return nil, nil }, "the module returned 0 objects for 1"},
		"an error":      {func(context.Context, *abi.Conversion) ([][]byte, error) { return nil, errors.New("field lost") }, "Job[b/a]: convert to example.com/v2: field lost"},
	} {
		b.convert = c.convert
		if result, objects := convertedBy(t, s, conversionReview("example.com/v2", job)); result.Status != metav1.StatusFailure || !strings.Contains(result.Message, c.want) || len(objects) > 0 {
			t.Errorf("%s: %+v, %v", name, result, objects)
		}
	}
	b.convert = jobs().convert
	for _, c := range []struct{ to, object, want string }{
		{"example.com/v3", job, "no module converts objects of kind Job to example.com/v3"},
		{"other.com/v1", job, "no module converts"},
		{"v1", job, "no module converts"},
		{"example.com/v2", strings.ReplaceAll(job, "Job", "Task"), "no module converts objects of kind Task"},
		{"example.com/v2", strings.ReplaceAll(job, "example.com", "example.org"), "Job[b/a]: is of example.org/v1, which is not a version of group example.com"},
	} {
		if result, _ := convertedBy(t, s, conversionReview(c.to, c.object)); result.Status != metav1.StatusFailure || !strings.Contains(result.Message, c.want) {
			t.Errorf("%s of %s: %+v", c.to, c.object, result)
		}
	}
	// In one of several batches, also by a panic.
	var objects []string
	for i := range 50 {
		objects = append(objects, strings.Replace(job, `"a"`, fmt.Sprintf(`"a%d"`, i), 1))
	}
	b.convert = func(_ context.Context, c *abi.Conversion) ([][]byte, error) {
		if headOf(c.Objects[0]).name != "a0" {
			panic("oops")
		}
		return setVersion(c)
	}
	refused(t, post(s, "/convert", conversionReview("example.com/v2", objects...)), 500, "BUG: the host panicked: oops")
}

// twice is an object with a key twice.
var twice = func() []byte {
	b := abi.AppendMapHead(nil, 4)
	for _, kv := range [][2]string{{"apiVersion", "example.com/v2"}, {"kind", "Job"}, {"kind", "Job"}} {
		for _, s := range kv {
			b = append(abi.AppendTextHead(b, len(s)), s...)
		}
	}
	meta, _ := abi.AppendValue(nil, map[string]any{"name": "a", "namespace": "b", "uid": "1"})
	return append(append(abi.AppendTextHead(b, 8), "metadata"...), meta...)
}()

// TestConvert_Refuses: a review that is not valid gets an HTTP error.
func TestConvert_Refuses(t *testing.T) {
	s := serverOf(jobs())
	for _, c := range []struct{ body, part string }{
		{`{"apiVersion":"apiextensions.k8s.io/v9","kind":"ConversionReview","request":{}}`, "want ConversionReview"},
		{`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a","objects":[]}}`, "are required"},
		{`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a","desiredAPIVersion":"v1","objects":{}}}`, "request.objects: has an unexpected type"},
		{conversionReview("example.com/v2", job, "1"), "request.objects[1]: is not an object"},
		{conversionReview("example.com/v2", job, `{"kind":"Other","metadata":{}}`), "of the same kind"},
		{conversionReview("example.com/v2", `{"kind":"Job"}`), "with metadata"},
	} {
		refused(t, post(s, "/convert", c.body), 400, c.part)
	}
}
