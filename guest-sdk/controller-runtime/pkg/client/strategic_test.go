// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStrategicMergeFrom_LeadsToTheObject checks, for random Deployments and
// with apimachinery's code, that the API server turns the old state and the
// patch into the new state.
func TestStrategicMergeFrom_LeadsToTheObject(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		from, to := randomDeployment(r), randomDeployment(r)
		patch, err := client.StrategicMergeFrom(from).Data(to)
		if err != nil {
			t.Fatal(err)
		}
		original, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		text, err := strategicpatch.StrategicMergePatch(original, patch, &appsv1.Deployment{})
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, original, patch)
		}
		var got appsv1.Deployment
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, normal(t, to)) {
			t.Fatalf("from  %s\npatch %s\ngot   %s\nwant  %+v", original, patch, text, to)
		}
	}
}

// normal returns an object after a round trip through JSON.
func normal(t *testing.T, d *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	out := &appsv1.Deployment{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
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
