// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// request is the request of one operation. decode fills the first part, locate the second, and
// unpack the body.
type request struct {
	op abi.Op
	abi.APIRequest
	// head is the kind and identity of its object.
	head head
	// object is the body of create, update and apply. patch is the body of patch: a map or an
	// array. unpack sets them.
	object map[string]any
	patch  any
	// texts has the opaque JSON of the body, which is sent unchanged.
	texts *abi.Texts
	// onlyJSON means that the answer cannot be read as protobuf.
	onlyJSON bool
	// encoded is the JSON of the body, if it already exists.
	encoded []byte
	// sent is the last sent body.
	sent []byte
	// proved is the version of the object that the apply would not change; see API.unchanged.
	proved version
	// created reports whether the last answer was about a new object.
	created bool
	// elsewhere means that the cache has no answer because other replicas watch some of the
	// objects.
	elsewhere bool
	// before is the state of the object when the request was last sent. found is that which the API
	// server has returned before, if the cache has none.
	before Before
	found  []byte

	kind kinds.Kind
	key  abi.Key
	// owner is the UID of the object whose child is applied.
	owner string
	// ledger counts the memory of the request. own is the ledger of a guest's request.
	ledger *ledger
	own    ledger
	// takenFrom are the field managers whose fields a patch of managedFields takes over.
	takenFrom []string
	// pins bind the body to the state against which it was judged.
	pins pins
}

// decode decodes a request except for its body, and makes the checks that do not need the API
// server: types, and the keys that the operation accepts. Errors are badRequest or a refusal.
func (r *request) decode(b []byte) (unknown []string, err error) {
	if err := checkValues(b); err != nil {
		return nil, err
	}
	if r.APIRequest, unknown, err = abi.DecodeRequest[abi.APIRequest](b); err != nil {
		return nil, badf("request of %s: %v", r.op, err)
	}
	if isNil(r.Object) {
		r.Object = nil
	}
	if isNil(r.Patch) {
		r.Patch = nil
	}
	if err := checkKeys(r.op, &r.APIRequest); err != nil {
		return nil, err
	}
	if r.Object != nil {
		if r.head, err = readHead(r.Object, "object"); err != nil {
			return nil, err
		}
	}
	if r.Patch != nil {
		if err := r.checkPatch(); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

func (r *request) checkPatch() error {
	form := packed.FormOf(r.Patch)
	switch r.PatchType {
	case abi.PatchJSON:
		if form != packed.Array {
			return badf("patch: must be an array of operations for patchType json")
		}
		return r.checkOps()
	case abi.PatchMerge, abi.PatchStrategic:
		if form != packed.Map {
			return badf("patch: must be a map for patchType %s", r.PatchType)
		}
	default:
		return badf("patchType: %q is neither json, merge nor strategic", shorten(string(r.PatchType)))
	}
	return nil
}

// unpack decodes the body of a permitted request, and completes it. If own is set, subject is the object of the
// request. Errors are badRequest or a refusal.
func (r *request) unpack(subject version, own bool) error {
	var err error
	if err := r.ledger.takePacked(r.Object); err != nil {
		return err
	}
	if err := r.ledger.takePacked(r.Patch); err != nil {
		return err
	}
	if r.Object != nil {
		if r.object, err = abi.DecodeObject(r.Object); err != nil {
			return badf("object: %v", err)
		}
		if err := r.takeTexts(r.Object, "object"); err != nil {
			return err
		}
		r.Object = nil
		r.completeObject()
	}
	if r.Patch != nil {
		if r.patch, err = abi.DecodeValue(r.Patch); err != nil {
			return badf("patch: %v", err)
		}
		if err := r.takeTexts(r.Patch, "patch"); err != nil {
			return err
		}
		r.Patch = nil
		if ops, ok := r.patch.([]any); ok {
			if err := checkPointers(ops); err != nil {
				return err
			}
		}
	}
	if own {
		r.bind(subject)
	}
	return r.addPreconditions()
}

// gvk returns the kind of the request. With a subresource, the object may be of another kind (a
// Scale, an Eviction), so the keys of the request take precedence.
func (r *request) gvk() (schema.GroupVersionKind, error) {
	apiVersion, err := r.wordOf("apiVersion", r.APIVersion, r.head.apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kind, err := r.wordOf("kind", r.Kind, r.head.kind)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, badf("apiVersion: %q is not a version such as v1 or apps/v1", shorten(apiVersion))
	}
	return gv.WithKind(kind), nil
}

func (r *request) wordOf(key, given, inObject string) (string, error) {
	if r.Subresource != "" && given != "" {
		return given, nil
	}
	word, err := agree(key, given, inObject)
	if err == nil && word == "" {
		err = badf("%s is needed by %s", key, r.op)
	}
	return word, err
}

// locate sets the kind and the key of the object, and checks that the object agrees. Errors are
// badRequest.
func (r *request) locate(kind kinds.Kind) error {
	r.kind = kind
	r.key = abi.Key{Namespace: r.Namespace, Name: r.Name}
	if r.Object != nil {
		if err := r.locateObject(); err != nil {
			return err
		}
	}
	if err := r.checkScope(); err != nil {
		return err
	}
	for _, segment := range [][2]string{{"namespace", r.key.Namespace}, {"name", r.key.Name}, {"subresource", r.Subresource}} {
		if msgs := rest.IsValidPathSegmentName(segment[1]); segment[1] != "" && len(msgs) > 0 {
			return badf("%s: %q %s", segment[0], shorten(segment[1]), msgs[0])
		}
	}
	return nil
}

// checkScope checks that a required namespace and name are given.
func (r *request) checkScope() error {
	switch {
	case !r.kind.Namespaced && r.key.Namespace != "":
		return badf("namespace: %s is cluster-scoped: omit the namespace", r.kind.Kind)
	case r.kind.Namespaced && r.key.Namespace == "" && !r.lists():
		return badf("namespace: is needed by %s: %s is namespaced, and there is no default namespace", r.op, r.kind.Kind)
	case r.key.Name == "" && !r.lists() && (r.op != abi.OpAPICreate || r.Subresource != ""):
		return badf("name is needed by %s", r.op)
	}
	return nil
}

// attributes returns the attributes for the policy.
func (r *request) attributes() Attributes {
	a := Attributes{
		Verb: verbs[r.op], Group: r.kind.Group, Resource: r.kind.Resource, Subresource: r.Subresource,
		Namespace: r.key.Namespace, Name: r.key.Name,
	}
	if r.op == abi.OpAPIList && r.FieldSelector != "" {
		if selector, err := fields.ParseSelector(r.FieldSelector); err == nil {
			a.Name, _ = selector.RequiresExactMatch("metadata.name")
		}
	}
	return a
}

// verbs maps the operations of this package to their verbs.
var verbs = map[abi.Op]string{
	abi.OpAPIGet: VerbGet, abi.OpAPIList: VerbList, abi.OpAPICreate: VerbCreate, abi.OpAPIUpdate: VerbUpdate,
	abi.OpAPIPatch: VerbPatch, abi.OpAPIApply: VerbPatch, abi.OpAPIDelete: VerbDelete,
	abi.OpCacheGet: VerbGet, abi.OpCacheList: VerbList,
}

// lists reports whether the answer is a list.
func (r *request) lists() bool { return slices.Contains(opsList, r.op) }

// body returns the body of the HTTP request, or nil. Errors are a refusal.
func (r *request) body() ([]byte, error) {
	if r.encoded != nil {
		return r.encoded, nil
	}
	b, err := r.encode()
	if err != nil {
		return nil, &refusal{status: abi.StatusInternal, message: fmt.Sprintf("request of %s: %v", r.op, err)}
	}
	return b, r.ledger.takeBytes(len(b))
}

func (r *request) encode() ([]byte, error) {
	switch {
	case r.pins != pins{}:
		return r.pinned()
	case r.object != nil:
		return r.texts.AppendJSON(nil, r.object)
	case r.patch != nil:
		return r.texts.AppendJSON(nil, r.patch)
	case r.op == abi.OpAPIDelete:
		return json.Marshal(r.deleteOptions())
	}
	return nil, nil
}

func (r *request) deleteOptions() map[string]any {
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	if r.DryRun {
		options["dryRun"] = []string{"All"}
	}
	if r.PropagationPolicy != "" {
		options["propagationPolicy"] = r.PropagationPolicy
	}
	if r.GracePeriodSeconds != nil {
		options["gracePeriodSeconds"] = *r.GracePeriodSeconds
	}
	if p := preconditions(r.Preconditions); len(p) > 0 {
		options["preconditions"] = p
	}
	return options
}
