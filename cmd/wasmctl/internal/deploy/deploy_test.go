// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host/load"
)

// A module much larger than a ConfigMap fits if it can be compressed. Several need not fit
// together. The error names a module that does not fit.
func TestModules_EachHasAConfigMap(t *testing.T) {
	random := make([]byte, MaxConfigMap+1)
	for i := range random {
		random[i] = byte(rand.Uint32()) //nolint:gosec // not for secrets
	}
	small, large := random[:MaxConfigMap*2/3], bytes.Repeat([]byte("wasm"), MaxConfigMap)
	if packed := Pack(small); !bytes.Equal(packed, small) {
		t.Error("a module that fits is compressed")
	}
	c := &Config{Name: "w", Source: FromConfigMap, Modules: map[string][]byte{"a": Pack(small), "b": Pack(small), "c": Pack(large)}}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	var names []string
	for _, o := range c.modules() {
		m := o.(*corev1.ConfigMap) //nolint:forcetypeassert // or the test fails
		names = append(names, m.Name)
		if m.Name == "w-module-c" {
			if got, err := load.Unpack(m.BinaryData["c.wasm"]); err != nil || !bytes.Equal(got, large) {
				t.Errorf("c: %d bytes, %v", len(got), err)
			}
		}
	}
	sources := c.volumes()[3].Projected.Sources
	if strings.Join(names, " ") != "w-module-a w-module-b w-module-c" || len(sources) != 3 || sources[1].ConfigMap.Name != "w-module-b" {
		t.Errorf("ConfigMaps %v, volume of %v", names, sources)
	}
	c.Modules["random"] = Pack(random)
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "controller[random]") || !strings.Contains(err.Error(), "--modules image") {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestReplicas_EndInTime: for all combinations, a pod has more time to end than a stop may take,
// and an autoscaler counts only replicas that share the objects.
func TestReplicas_EndInTime(t *testing.T) {
	for _, drain := range []time.Duration{0, time.Second, 5 * time.Minute} {
		for _, shards := range []int{0, 8} {
			for _, replicas := range []int32{1, 5} {
				for _, most := range []int32{0, 4, 5, 8, 9} {
					c := &Config{Name: "w", Namespace: "ns", Replicas: replicas, Shards: shards, MaxReplicas: most, Drain: drain}
					if ok := most == 0 || shards > 0 && most >= replicas && int(most) <= shards; ok != (c.Validate() == nil) {
						t.Errorf("%+v: %v", c, c.Validate())
					} else if !ok {
						continue
					}
					d := c.deployment()
					stop := cmp.Or(drain, 30*time.Second)
					if shards > 0 {
						stop += 15 * time.Second
					}
					if grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second; grace < stop+5*time.Second {
						t.Errorf("%+v: ends within %v, and has %v", c, stop, grace)
					}
					args := strings.Join(d.Spec.Template.Spec.Containers[0].Args, " ")
					if strings.Contains(args, "--shards 8 ") != (shards > 0) || strings.Contains(args, "--leader-elect ") != (shards == 0 && replicas > 1) {
						t.Errorf("%+v: %s", c, args)
					}
					if (d.Spec.Replicas == nil) != (most > 0) || (len(c.replicated()) > 2) != (most > 0) {
						t.Errorf("%+v: %v replicas, and %d objects", c, d.Spec.Replicas, len(c.replicated()))
					}
				}
			}
		}
	}
}

// TestWebhookRights_NameTheCRDs whose objects the modules convert, if they are known. Modules without conversions need no right to CRDs.
func TestWebhookRights_NameTheCRDs(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string // verbs and names of the rights to CRDs
	}{
		"conversions":      {Config{Webhooks: true, Converts: []string{"b.example.dev", "a.example.dev", "b.example.dev"}}, "list; get,update a.example.dev b.example.dev"},
		"no conversions":   {Config{Webhooks: true}, ""},
		"unknown modules":  {Config{Webhooks: true, CRDs: []any{}}, "list; get,update"},
		"without webhooks": {Config{Converts: []string{"a.example.dev"}}, ""},
	} {
		var got []string
		for _, r := range c.config.webhookRights() {
			if r.Resource == "customresourcedefinitions" {
				got = append(got, strings.Join(append([]string{strings.Join(r.Verbs, ",")}, r.Names...), " "))
			}
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}
