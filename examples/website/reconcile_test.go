// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"
)

var configMap = wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "hello"}

func site(t *testing.T, version, name string, spec wasmctl.Map) wasmctl.Object {
	t.Helper()
	o, err := wasmctl.NewObject(wasmctl.Map{
		"apiVersion": group + "/" + version, "kind": kind, "metadata": wasmctl.Map{"name": name, "namespace": "default"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWebsite_MakesItsConfigMap(t *testing.T) {
	host := guesttest.New(t, site(t, "v2", "hello", wasmctl.Map{"host": "a.example", "port": 8443, "tls": true, "theme": "plain"}))
	host.Run(reconciler)
	if url := host.Get(configMap).String("data", "url"); url != "https://a.example:8443" {
		t.Errorf("url %q", url)
	}
}

func TestDefault_SetsWhatIsAbsent(t *testing.T) {
	host := guesttest.New(t)
	for _, tc := range []struct{ spec, want wasmctl.Map }{
		{wasmctl.Map{"host": "a"}, wasmctl.Map{"host": "a", "port": 80, "theme": "plain"}},
		{wasmctl.Map{"host": "a", "tls": true, "new": 1}, wasmctl.Map{"host": "a", "tls": true, "new": 1, "port": 443, "theme": "plain"}},
		{wasmctl.Map{"host": "a", "port": 1, "theme": "dark"}, nil},
	} {
		v := host.Default(reconciler, wasmctl.Admission{Object: site(t, "v2", "hello", tc.spec)})
		got, changed := v.Object.(wasmctl.Object)
		if changed != (tc.want != nil) || changed && !wasmctl.Equal(got.At("spec"), tc.want) {
			t.Errorf("%v: got %+v, want %v", tc.spec, v, tc.want)
		}
	}
}

func TestValidate_DeniesAndWarns(t *testing.T) {
	host := guesttest.New(t, site(t, "v2", "other", wasmctl.Map{"host": "taken.example"}))
	object := func(spec wasmctl.Map) wasmctl.Object { return site(t, "v2", "hello", spec) }
	for want, a := range map[string]wasmctl.Admission{
		"":                                    {Object: object(wasmctl.Map{"host": "a", "port": 80})},
		"spec.port: 80 is not a port for TLS": {Object: object(wasmctl.Map{"host": "a", "port": 80, "tls": true})},
		"spec.host: cannot be changed":        {Object: object(wasmctl.Map{"host": "a"}), Old: object(wasmctl.Map{"host": "b"})},
		"spec.host: belongs to other":         {Object: object(wasmctl.Map{"host": "taken.example"})},
	} {
		got := ""
		if v := host.Validate(reconciler, a); v.Denied != nil {
			got = v.Denied.Message
		}
		if got != want {
			t.Errorf("denied: %q, want %q", got, want)
		}
	}
	v := host.Validate(reconciler, wasmctl.Admission{Object: object(wasmctl.Map{"host": "a", "theme": "classic"})})
	if v.Denied != nil || len(v.Warnings) != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestConvert_LosesNothing(t *testing.T) {
	host := guesttest.New(t)
	for _, want := range []wasmctl.Object{
		site(t, "v1", "hello", wasmctl.Map{"address": "a.example:80", "theme": "dark"}),
		site(t, "v1", "hello", wasmctl.Map{"address": "a.example"}),
		site(t, "v2", "hello", wasmctl.Map{"host": "a.example", "port": 443, "tls": true}),
		site(t, "v2", "hello", wasmctl.Map{"host": "a.example", "tls": false}),
	} {
		to := group + "/v2"
		if want.APIVersion() == to {
			to = group + "/v1"
		}
		there, err := host.Convert(reconciler, want, to)
		if err != nil || there.APIVersion() != to {
			t.Fatalf("%v, %s", err, there.APIVersion())
		}
		got, err := host.Convert(reconciler, there, want.APIVersion())
		if err != nil || !wasmctl.Equal(got.At("spec"), want.At("spec")) || len(got.Annotations()) > 0 {
			t.Errorf("%v: there and back again, %v is different", want.APIVersion(), err)
		}
	}
}
