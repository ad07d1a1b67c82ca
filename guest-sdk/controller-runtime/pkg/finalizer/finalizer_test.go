// SPDX-License-Identifier: Apache-2.0

package finalizer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/finalizer"
)

type cleanup func() (finalizer.Result, error)

func (c cleanup) Finalize(context.Context, client.Object) (finalizer.Result, error) { return c() }

// An object that is not being deleted gets all finalizers. An object that is
// being deleted loses those that succeeded; those that failed stay, and the
// others still run.
func TestFinalizers_DoTheirWorkOnce(t *testing.T) {
	all := []string{"example.com/a", "example.com/b", "example.com/c"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		set := finalizer.NewFinalizers()
		fails, ran := map[string]bool{}, map[string]bool{}
		status := false
		for _, key := range all {
			fails[key] = r.IntN(2) == 0
			one := finalizer.Result{StatusUpdated: r.IntN(2) == 0}
			f := cleanup(func() (finalizer.Result, error) {
				ran[key] = true
				status = status || one.StatusUpdated
				if fails[key] {
					return one, errors.New("no")
				}
				return one, nil
			})
			if err := set.Register(key, f); err != nil {
				t.Fatal(err)
			}
			if set.Register(key, f) == nil {
				t.Fatal("a key twice")
			}
		}
		obj := &corev1.Pod{}
		res, err := set.Finalize(t.Context(), obj)
		if err != nil || !res.Updated || !slices.Equal(obj.Finalizers, all) || len(ran) > 0 {
			t.Fatalf("of an object that lives: %+v %v %v", res, err, obj.Finalizers)
		}
		if res, _ = set.Finalize(t.Context(), obj); res.Updated {
			t.Fatal("nothing was to be added")
		}
		obj.DeletionTimestamp = &metav1.Time{}
		obj.Finalizers = obj.Finalizers[r.IntN(3):]
		had := slices.Clone(obj.Finalizers)
		res, err = set.Finalize(t.Context(), obj)
		var left []string
		for _, key := range had {
			if fails[key] {
				left = append(left, key)
			}
		}
		if !slices.Equal(obj.Finalizers, left) || (err != nil) != (len(left) > 0) || len(ran) != len(had) ||
			res.Updated != (len(left) < len(had)) || res.StatusUpdated != status {
			t.Fatalf("seed %d: had %v, has %v, want %v: %+v %v", seed, had, obj.Finalizers, left, res, err)
		}
	}
}
