// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// injected is the annotation of cert-manager, which then writes the caBundle.
const injected = "cert-manager.io/inject-ca-from"

// label marks the objects of a group of replicas. Its value is shortened: see Options.mark.
const label = "wasmctl.dev/webhooks"

// mark returns the value of label.
func (o *Options) mark() string { return o.Name[max(0, len(o.Name)-63):] }

// calls reports whether a client configuration calls this group, and the path.
func (o *Options) calls(client map[string]any) (path string, ok bool) {
	if o.Service.Name == "" {
		url, _, _ := unstructured.NestedString(client, "url")
		path, ok = strings.CutPrefix(url, o.URL)
		return path, ok && strings.HasPrefix(path, "/")
	}
	service, _, _ := unstructured.NestedMap(client, "service")
	path, _ = service["path"].(string)
	return path, service["namespace"] == o.Service.Namespace && service["name"] == o.Service.Name
}

// clients returns the client configurations of an object that call this group: of each webhook, or of a conversion. They are parts of the
// object.
func (o *Options) clients(object *unstructured.Unstructured) (list []map[string]any) {
	holders, _, _ := unstructured.NestedFieldNoCopy(object.Object, "webhooks")
	hooks, _ := holders.([]any)
	if conversion, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook"); ok {
		hooks = []any{conversion}
	}
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		if client, ok := hook["clientConfig"].(map[string]any); ok {
			if _, ours := o.calls(client); ours {
				list = append(list, client)
			}
		}
	}
	return list
}

// bundles returns the bundles of an object that the API server uses for this group.
func (o *Options) bundles(object *unstructured.Unstructured) (list [][]byte) {
	for _, client := range o.clients(object) {
		list = append(list, bundleOf(client))
	}
	return list
}

// bundleOf returns the bundle of a client configuration; nil if it has none.
func bundleOf(client map[string]any) []byte {
	text, _ := client["caBundle"].(string)
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return bundle
}

// setBundle writes the bundle into an object, if there is one.
func (o *Options) setBundle(object *unstructured.Unstructured, bundle []byte) {
	if bundle == nil {
		return
	}
	for _, client := range o.clients(object) {
		client["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
	}
}

// merge returns a configuration with the desired webhooks. Of the others, those remain that retain returns true for, by the path of their URL.
func (o *Options) merge(was *unstructured.Unstructured, desired []any, retain func(path string) bool) *unstructured.Unstructured {
	now := was.DeepCopy()
	hooks, _, _ := unstructured.NestedFieldNoCopy(now.Object, "webhooks")
	existing, _ := hooks.([]any)
	clients := map[any]map[string]any{} // by name
	list := make([]any, 0, len(desired))
	for _, h := range existing {
		hook, _ := h.(map[string]any)
		clients[hook["name"]], _ = hook["clientConfig"].(map[string]any)
	}
	names := map[any]bool{}
	for _, h := range desired {
		hook, _ := h.(map[string]any)
		names[hook["name"]] = true
		client, _ := hook["clientConfig"].(map[string]any)
		if bundle, ok := clients[hook["name"]]["caBundle"]; ok {
			client["caBundle"] = bundle
		}
		list = append(list, hook)
	}
	for _, h := range existing {
		hook, _ := h.(map[string]any)
		path, ours := o.calls(clients[hook["name"]])
		if !names[hook["name"]] && ours && retain(path) {
			list = append(list, hook)
		}
	}
	now.Object["webhooks"] = list
	return now
}

// fit leaves out the webhooks that would make a configuration larger than it may be, first those that are not registered yet.
func (o *Options) fit(of *object, failed problems) {
	hooks, _, _ := unstructured.NestedFieldNoCopy(of.was.Object, "webhooks")
	existing, _ := hooks.([]any)
	registered := map[any]bool{}
	for _, h := range existing {
		hook, _ := h.(map[string]any)
		registered[hook["name"]] = true
	}
	hooks, _, _ = unstructured.NestedFieldNoCopy(of.now.Object, "webhooks")
	list, _ := hooks.([]any)
	size, fits := 0, make([]any, len(list))
	for _, first := range []bool{true, false} {
		for i, h := range list {
			hook, _ := h.(map[string]any)
			if registered[hook["name"]] != first {
				continue
			}
			client, _ := hook["clientConfig"].(map[string]any)
			bundle, _ := client["caBundle"].(string)
			if n := len(key(hook)) + len(bundle) + bookkeeping; size+n <= maxConfiguration {
				size, fits[i] = size+n, h
				continue
			}
			path, _ := o.calls(client)
			failed[webhook.Name(path)] = fmt.Errorf("%s: webhook[%s]: the configuration is full: its webhooks are limited to %d KiB, and each contains the certificates of all replicas; "+
				"remove webhooks, or serve some controllers by another installation", of, path, maxConfiguration>>10)
		}
	}
	if fits = slices.DeleteFunc(fits, func(h any) bool { return h == nil }); len(fits) < len(list) {
		of.now.Object["webhooks"] = fits
	}
}

// convert returns a CRD whose objects are converted at the path.
func (o *Options) convert(was *unstructured.Unstructured, path string) *unstructured.Unstructured {
	now := was.DeepCopy()
	client := o.client(path)
	if bundle, ok, _ := unstructured.NestedString(was.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle"); ok {
		client["caBundle"] = bundle
	}
	conversion := map[string]any{
		"strategy": "Webhook",
		"webhook":  map[string]any{"clientConfig": client, "conversionReviewVersions": []any{"v1"}},
	}
	if spec, ok := now.Object["spec"].(map[string]any); ok {
		spec["conversion"] = conversion
	}
	labels := now.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[label] = o.mark()
	now.SetLabels(labels)
	return now
}

func equal(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a.Object, b.Object) }
