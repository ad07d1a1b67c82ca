// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/base64"
	"reflect"
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
		text, _ := client["caBundle"].(string)
		bundle, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			bundle = nil
		}
		list = append(list, bundle)
	}
	return list
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

// convert returns a CRD whose objects are converted by the controller with this prefix.
func (o *Options) convert(was *unstructured.Unstructured, prefix string) *unstructured.Unstructured {
	now := was.DeepCopy()
	client := o.client(prefix + webhook.ConvertPath)
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
