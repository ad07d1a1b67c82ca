// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// variants are objects, each with merge patches that make further objects of it.
type variants struct {
	Path     string
	Object   json.RawMessage
	Variants []json.RawMessage
	// Differing are the objects for which the answers are known to differ.
	Differing []json.RawMessage
}

// repeated are the letters of testdata/objects.yaml that are repeated: a*64.
var repeated = regexp.MustCompile(`[a-z]\*\d+`)

// verdict is the comparable part of the answer to a new object.
type verdict struct {
	Code   int
	Reason metav1.StatusReason
	Fields []string
}

func verdictOf(code int, status *metav1.Status) verdict {
	v := verdict{Code: code, Reason: status.Reason}
	if status.Details != nil {
		fields := map[string]bool{}
		for _, c := range status.Details.Causes {
			fields[c.Field] = true
		}
		v.Fields = slices.Sorted(maps.Keys(fields))
	}
	return v
}

// TestServer_TakesTheObjectsThatTheRealOneTakes creates the objects of testdata/objects.yaml
// on both servers.
func TestServer_TakesTheObjectsThatTheRealOneTakes(t *testing.T) {
	real, kinds := realServer(t)
	memory := New(Config{Kinds: kinds})
	content, err := os.ReadFile("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []variants
	content = repeated.ReplaceAllFunc(content, func(m []byte) []byte {
		n, _ := strconv.Atoi(string(m[2:]))
		return bytes.Repeat(m[:1], n)
	})
	if err := sigsyaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range all {
		n += len(v.Variants)
		for i, patch := range slices.Concat([]json.RawMessage{json.RawMessage("{}")}, v.Variants, v.Differing) {
			object, err := jsonpatch.MergePatch(v.Object, patch)
			if err != nil {
				t.Fatal(err)
			}
			want := postTo(t, real.transport, real.devcluster.URL()+v.Path, object)
			got := postTo(t, memory, "http://in-memory"+v.Path, object)
			if strings.HasSuffix(v.Path, "/customresourcedefinitions") {
				got = parsed(object)
			}
			if equal := reflect.DeepEqual(want, got); equal != (i <= len(v.Variants)) {
				t.Errorf("%s %.200s\nreal:      %.200s\nin memory: %.200s", v.Path, patch, fmt.Sprint(want), fmt.Sprint(got))
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d objects", n)
	}
}

// postTo creates an object in a dry run.
func postTo(t *testing.T, transport http.RoundTripper, url string, object []byte) verdict {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"?dryRun=All", strings.NewReader(string(object)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var status metav1.Status
	if res.StatusCode != http.StatusCreated {
		if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
			status.Message = fmt.Sprint(err)
		}
	}
	return verdictOf(res.StatusCode, &status)
}

// parsed is the answer to a CustomResourceDefinition, which the server takes from its Config.
func parsed(object []byte) verdict {
	_, err := ParseCRD(object)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		s := status.Status()
		return verdictOf(int(s.Code), &s)
	}
	return verdict{Code: http.StatusCreated}
}
