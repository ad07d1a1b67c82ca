package deploy

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host"
)

// A module of many times what a ConfigMap holds goes into one, if it can be
// compressed; several need not fit together. One that cannot is refused by name.
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
			if got, err := host.Unpack(m.BinaryData["c.wasm"]); err != nil || !bytes.Equal(got, large) {
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
