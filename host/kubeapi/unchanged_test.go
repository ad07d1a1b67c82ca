// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/managed"
	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// liveCache is a cache that is never behind.
type liveCache struct {
	packedCache

	t     testing.TB
	admin *Client
	// of and key are those of the only object that Children yields.
	of  schema.GroupVersionResource
	key abi.Key
	// frozen, if set, is the state of each object.
	frozen abi.Stored
}

// Children implements Children.
func (c *liveCache) Children(_ abi.Key, uid string, yield func(schema.GroupVersionResource, abi.Key, string, string) bool) {
	o, _ := c.Stored(c.of, c.key)
	if o, ok := o.(*storedState); ok && o.controller() == uid {
		yield(c.of, c.key, o.UID(), o.ResourceVersion())
	}
}

// storedState is an object in a liveCache.
type storedState struct{ packed, applied []byte }

func (o *storedState) Msgpack() []byte { return o.packed }
func (o *storedState) Applied() string { return string(o.applied) }
func (o *storedState) UID() string     { return o.meta("uid") }
func (o *storedState) ResourceVersion() string {
	return o.meta("resourceVersion")
}

func (o *storedState) meta(key string) string {
	c := packed.At(packed.Find(packed.Find(o.packed, "metadata"), key))
	return string(c.Text())
}

// controller returns the uid of the object's controller, or "".
func (o *storedState) controller() string {
	references := packed.At(packed.Find(packed.Find(o.packed, "metadata"), "ownerReferences"))
	for range references.ArrayLen() {
		reference := references.Value()
		uid := packed.At(packed.Find(reference, "uid"))
		if controller := packed.Find(reference, "controller"); len(controller) > 0 && controller[0] == 0xc3 {
			return string(uid.Text())
		}
	}
	return ""
}

// Stored implements Cache.
func (c *liveCache) Stored(gvr schema.GroupVersionResource, key abi.Key) (abi.Stored, bool) {
	if c.frozen != nil {
		return c.frozen, true
	}
	r := request{kind: kinds.Kind{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource}, key: key}
	js, err := c.admin.rest.Get().AbsPath(r.path()...).Do(c.t.Context()).Raw()
	if err != nil {
		return nil, true
	}
	t := transcode.Transcoder{OmitManagedFields: true}
	var o storedState
	var ok bool
	if o.packed, ok = t.Append(nil, js); !ok {
		c.t.Fatalf("%s", js)
	}
	o.applied = managed.Append(nil, t.Omitted, o.controller())
	return &o, true
}

// An apply that the cache proves to change nothing is not sent, whatever the process remembers; and
// if it is sent all the same, it changes nothing. What was applied last, and is what the API server
// stores, is proved.
func TestUnchanged_TheAPIServerAgrees(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		live := d.withLiveCache()
		key := []abi.Key{{Namespace: d.ns, Name: "owner"}}
		rnd := rand.New(rand.NewPCG(1, 2))
		last := map[string]map[string]any{}
		proved, changed := 0, 0
		for range 120 {
			name := oneOf(rnd, "cm", "secret", "service", "deployment", "statefulset", "ingress", "sprocket")
			live.of, live.key = d.resourceOf(name), abi.Key{Namespace: d.ns, Name: name}
			o := last[name]
			repeated := o != nil && rnd.IntN(2) == 0
			if !repeated {
				o = randomChild(rnd, name)
				last[name] = o
			}
			disturbed := rnd.IntN(3) == 0 && d.disturb(rnd, name)
			r := d.result(o)
			r.Force = true
			d.Forget(key[0])
			sent := d.declare(r)
			if len(sent) > 0 {
				if changed++; repeated && !disturbed {
					t.Fatalf("%s was applied before, and was sent again: %v\n%v\n%v", name, sent, o, d.versionOf(name))
				}
				continue
			}
			proved++
			before := d.versionOf(name)
			d.Renew(key)
			if sent := d.declare(r); len(sent) == 0 {
				t.Fatal("a renewed object was not sent")
			}
			if after := d.versionOf(name); after != before {
				t.Fatalf("an apply of %s changed something: %v\n%s\n%s", name, o, before, after)
			}
		}
		if proved < 20 || changed < 20 {
			t.Errorf("%d were proved, %d were not", proved, changed)
		}
	})
}

// withLiveCache gives the API a cache that is never behind.
func (d *declarer) withLiveCache() *liveCache {
	live := &liveCache{t: d.t, admin: d.cache.admin, of: configMaps, key: abi.Key{Namespace: d.ns, Name: "cm"}}
	d.cfg.Cache, d.cfg.Children = live, live
	d.cache.gvrs = nil // it is not read
	return live
}

// resourceOf returns the resource of an object of randomChild.
func (d *declarer) resourceOf(name string) schema.GroupVersionResource {
	d.t.Helper()
	o := d.about(name)
	kind, err := d.cfg.Resolver.ResolveGVK(d.t.Context(), schema.FromAPIVersionAndKind(fmt.Sprint(o["apiVersion"]), fmt.Sprint(o["kind"])))
	if err != nil {
		d.t.Fatal(err)
	}
	return kind.GVR()
}

// No event of a kind that the module does not own causes a run that would repair what this one omits.
func TestUnchanged_OnlyAChildOfAnOwnedKindIsProved(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		d.withLiveCache().of = deployments
		r := d.result(configMap("cm", "1"))
		for range 2 {
			d.Forget(abi.Key{Namespace: d.ns, Name: "owner"})
			if sent := d.declare(r); len(sent) == 0 {
				t.Error("the ConfigMap was not sent")
			}
		}
	})
}

// A predicate may ignore the event of the last apply, so no later run would repair what this one omits.
func TestUnchanged_ACacheBehindTheLastApplyProvesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, d *declarer) {
		live := d.withLiveCache()
		d.declare(d.result(configMap("cm", "1")))
		before, _ := live.Stored(live.of, live.key)
		d.declare(d.result(configMap("cm", "2")))
		live.frozen = before
		d.declare(d.result(configMap("cm", "1")))
		if v := at(d.ok(abi.OpAPIGet, d.ref("cm")), "data", "k"); v != "1" {
			t.Errorf("the ConfigMap has %v, and not the value that was declared last", v)
		}
	})
}

// about names an object of randomChild.
func (d *declarer) about(name string) map[string]any {
	o := randomChild(rand.New(rand.NewPCG(0, 0)), name)
	return map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "namespace": d.ns, "name": name}
}

func (d *declarer) versionOf(name string) string {
	o := d.ok(abi.OpAPIGet, d.about(name))
	return fmt.Sprint(at(o, "metadata", "uid"), at(o, "metadata", "resourceVersion"), at(o, "metadata", "managedFields"))
}

// disturb changes an object as another manager, and reports whether it did.
func (d *declarer) disturb(rnd *rand.Rand, name string) bool {
	change := map[string]any{"metadata": map[string]any{"labels": map[string]any{"theirs": fmt.Sprint(rnd.IntN(9))}}}
	ours := map[string]map[string]any{
		"cm":          {"data": map[string]any{"a": "theirs"}},
		"secret":      {"data": map[string]any{"a": "dGhlaXJz"}},
		"service":     {"spec": map[string]any{"selector": map[string]any{"app": "theirs"}}},
		"deployment":  {"spec": map[string]any{"replicas": 7}},
		"statefulset": {"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "theirs"}}}},
		"ingress":     {"spec": map[string]any{"tls": nil}},
		"sprocket":    {"spec": map[string]any{"tags": []any{"theirs", "b", "a"}, "any": map[string]any{"a": nil}}},
	}
	switch rnd.IntN(3) {
	case 0:
		change = ours[name]
	case 1:
		change = map[string]any{"metadata": map[string]any{"labels": map[string]any{"l": "theirs"}}}
	}
	status, _ := d.do(abi.OpAPIPatch, with(d.about(name), "patchType", "merge", "patch", change, "fieldManager", "theirs"))
	return status == abi.StatusOK
}

func oneOf[T any](rnd *rand.Rand, values ...T) T { return pick(rnd, values) }

// randomChild returns an object whose values are those that the API server stores.
func randomChild(rnd *rand.Rand, name string) map[string]any {
	meta := map[string]any{"name": name}
	if rnd.IntN(2) == 0 {
		meta["labels"] = map[string]any{"l": oneOf(rnd, "1", "2")}
	}
	if rnd.IntN(4) == 0 {
		meta["annotations"] = map[string]any{"example.dev/a": oneOf(rnd, "", "x")}
	}
	texts := func() map[string]any {
		m := map[string]any{"a": oneOf(rnd, "MQ==", "Mg==")}
		for _, key := range []string{"b", "c"} {
			if rnd.IntN(2) == 0 {
				m[key] = oneOf(rnd, "MQ==", "Mg==", "")
			}
		}
		return m
	}
	o := map[string]any{"apiVersion": "v1", "metadata": meta}
	switch name {
	case "cm":
		maps.Copy(o, map[string]any{"kind": "ConfigMap", "data": texts()})
	case "secret":
		maps.Copy(o, map[string]any{"kind": "Secret", "type": "Opaque", "data": texts()})
	case "service":
		maps.Copy(o, map[string]any{"kind": "Service", "spec": map[string]any{
			"selector": map[string]any{"app": oneOf(rnd, "x", "y")}, "ports": randomPorts(rnd, "port", "targetPort"),
		}})
	case "ingress":
		port := oneOf(rnd, map[string]any{"number": 80}, map[string]any{"name": "p"})
		path := map[string]any{"path": "/", "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": "x", "port": port}}}
		maps.Copy(o, map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "status": map[string]any{}, "spec": map[string]any{
			"rules": []any{map[string]any{"host": oneOf(rnd, "x", "y"), "http": map[string]any{"paths": []any{path}}}},
			"tls":   []any{map[string]any{"hosts": []any{"x"}, "secretName": "s"}},
		}})
	case "sprocket":
		meta["finalizers"] = []any{"orphan"} // the garbage collector removes it
		meta["creationTimestamp"] = nil
		spec := map[string]any{"size": oneOf(rnd, 1, 2), "share": oneOf(rnd, 0.5, 1.0), "any": map[string]any{"a": oneOf[any](rnd, nil, "x", []any{1, nil}, map[string]any{"b": true})}}
		if rnd.IntN(2) == 0 {
			spec["tags"] = oneOf(rnd, []any{"a", "b"}, []any{"b", "a"}, []any{"c"})
		}
		if rnd.IntN(2) == 0 {
			spec["parts"] = oneOf(rnd, []any{map[string]any{"id": 1}}, []any{map[string]any{"id": 2, "kind": "x", "flag": false}, map[string]any{"id": 1}},
				[]any{map[string]any{"id": 1, "kind": "y", "flag": true}, map[string]any{"id": 1}})
		}
		maps.Copy(o, map[string]any{"apiVersion": "kubeapi.wasmctl.dev/v1", "kind": "Sprocket", "spec": spec})
	case "deployment", "statefulset":
		container := map[string]any{"name": "c", "image": oneOf(rnd, "none", "some:1"), "ports": randomPorts(rnd, "containerPort", "hostPort")}
		if rnd.IntN(2) == 0 {
			container["args"] = oneOf(rnd, []any{"a"}, []any{"a", "b"}, []any{"b", "a"})
		}
		if rnd.IntN(2) == 0 {
			container["env"] = oneOf(rnd, []any{env("A"), env("B")}, []any{env("B"), env("A")}, []any{env("A")})
		}
		if rnd.IntN(2) == 0 {
			container["resources"] = map[string]any{"limits": map[string]any{"cpu": oneOf(rnd, "1", "100m"), "memory": "64Mi"}}
		}
		labels := map[string]any{"app": "web"}
		spec := map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}},
		}
		if rnd.IntN(2) == 0 {
			spec["replicas"] = oneOf(rnd, 0, 3)
		}
		maps.Copy(o, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "status": map[string]any{}, "spec": spec})
		if name == "statefulset" {
			spec["serviceName"] = "x"
			o["kind"] = "StatefulSet"
		}
	}
	return o
}

func env(name string) map[string]any { return map[string]any{"name": name, "value": name} }

// randomPorts returns one port, or two with one number, with or without the default of protocol.
func randomPorts(rnd *rand.Rand, number, other string) []any {
	port := map[string]any{"name": "p", number: oneOf(rnd, 80, 81)}
	if rnd.IntN(2) == 0 {
		port["protocol"] = "TCP"
	}
	if rnd.IntN(3) == 0 {
		port[other] = port[number]
	}
	ports := []any{port}
	if rnd.IntN(2) == 0 {
		ports = append(ports, map[string]any{"name": "q", number: port[number], "protocol": "UDP"})
	}
	return ports
}
