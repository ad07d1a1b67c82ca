// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMergeFrom_IsTheDifferenceOfTheJSON checks, for random Deployments, that
// the patch is the difference (RFC 7386) of the JSON of both states.
func TestMergeFrom_IsTheDifferenceOfTheJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		sameAsJSON(t, randomDeployment(r), randomDeployment(r))
	}
}

// TestMergeFrom_OfMapsIsTheDifferenceOfTheJSON checks the same for objects
// without a Go type, whose numbers may have two types.
func TestMergeFrom_OfMapsIsTheDifferenceOfTheJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	object := func() client.Object {
		m := randomMap(r, 3)
		m["metadata"] = map[string]any{"name": "a"}
		return &unstructured.Unstructured{Object: m}
	}
	for range 5000 {
		sameAsJSON(t, object(), object())
	}
}

// sameAsJSON compares the patch with a model.
func sameAsJSON(t *testing.T, from, to client.Object) {
	t.Helper()
	data, err := client.MergeFrom(from).Data(to)
	if err != nil {
		t.Fatal(err)
	}
	want := difference(parsed(t, asJSON(t, from)), parsed(t, asJSON(t, to)))
	if got := parsed(t, data); !reflect.DeepEqual(got, want) {
		t.Fatalf("from %s\nto   %s\ngot  %s\nwant %s", asJSON(t, from), asJSON(t, to), data, asJSON(t, want))
	}
}

// difference implements RFC 7386 literally.
func difference(from, to map[string]any) map[string]any {
	diff := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			diff[key] = nil
		}
	}
	for key, now := range to {
		was, had := from[key]
		wasMap, ok1 := was.(map[string]any)
		nowMap, ok2 := now.(map[string]any)
		if ok1 && ok2 {
			if inner := difference(wasMap, nowMap); len(inner) > 0 {
				diff[key] = inner
			}
		} else if !had || !reflect.DeepEqual(was, now) {
			diff[key] = now
		}
	}
	return diff
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parsed(t *testing.T, text []byte) (m map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

// randomMap returns a map with few keys and values, so that many are equal.
func randomMap(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for _, key := range []string{"a", "b", "c"} {
		if r.IntN(4) > 0 {
			m[key] = randomValue(r, depth-1)
		}
	}
	return m
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return int64(r.IntN(2))
	case n == 3:
		return float64(r.IntN(3)) / 2
	case n == 4 || depth <= 0:
		return string(rune('a' + r.IntN(2)))
	case n == 5:
		return []any{}
	case n == 6:
		return []any{randomValue(r, depth-1), randomValue(r, depth-1)}
	default:
		return randomMap(r, depth)
	}
}

func randomDeployment(r *rand.Rand) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	some := func(n int, f func(name string)) {
		for _, i := range r.Perm(4)[:r.IntN(n)] {
			f(fmt.Sprint("n", i))
		}
	}
	d.Labels = map[string]string{}
	some(3, func(n string) { d.Labels[n] = fmt.Sprint(r.IntN(2)) })
	some(3, func(n string) { d.Finalizers = append(d.Finalizers, n) })
	spec := &d.Spec.Template.Spec
	some(4, func(n string) {
		c := corev1.Container{Name: n, Image: fmt.Sprint(r.IntN(2))}
		some(3, func(n string) { c.Env = append(c.Env, corev1.EnvVar{Name: n, Value: fmt.Sprint(r.IntN(2))}) })
		some(3, func(n string) { c.Args = append(c.Args, n) })
		spec.Containers = append(spec.Containers, c)
	})
	some(3, func(n string) {
		v := corev1.Volume{Name: n}
		if r.IntN(2) == 0 {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		} else {
			v.Secret = &corev1.SecretVolumeSource{SecretName: n}
		}
		spec.Volumes = append(spec.Volumes, v)
	})
	some(3, func(n string) { spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: n}) })
	if r.IntN(2) == 0 {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDeployment{}}
	} else {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: "Recreate"}
	}
	return d
}
