// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/wasmctl/wasmctl/internal/suggest"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// MapFunc selects a mapping by the guest: events go to its export map, through a Hook.
const MapFunc = "func"

// mapSpecs lists the valid forms of a spec for error messages.
const mapSpecs = `"owner", "label:KEY", "annotation:KEY" or "func"`

// Relation connects the objects of a watch with the objects that are reconciled because of them.
type Relation struct {
	// Group, Kind and ClusterScoped are those of the reconciled kind.
	Group, Kind   string
	ClusterScoped bool
	// Resource is the watched resource, such as "secrets" or "deployments.apps"; WatchedClusterScoped means that its objects have no
	// namespace.
	Resource             string
	WatchedClusterScoped bool
	// ControllerOnly ignores owners that are not the managing controller of the object. It is used only for "owner".
	ControllerOnly bool
	// Waiting is Owners.Waiting. It is used only for "owner".
	Waiting func(child reflector.ObjectRef) []reflector.ObjectRef
	// OnInvalid is Target.OnInvalid.
	OnInvalid func(object reflector.ObjectRef, key, value string, err error)
}

// ParseMap returns the Mapper for watches[].map of a manifest: "owner", "label:KEY" or "annotation:KEY". For "func" it returns nil, because
// a Hook handles those events. The error suggests a correction if possible, or explains why the relation is impossible.
func ParseMap(spec string, rel Relation) (Mapper, error) {
	kind, key, hasKey := strings.Cut(spec, ":")
	target := Target{Resource: rel.Resource, ClusterScoped: rel.ClusterScoped, OnInvalid: rel.OnInvalid}
	var mapper Mapper
	switch kind {
	case MapFunc:
	case "owner":
		if rel.WatchedClusterScoped && !rel.ClusterScoped {
			return nil, fmt.Errorf("map[%s]: %s have no namespace, and an owner with a namespace must be in the same one", spec, rel.Resource)
		}
		mapper = Owners{
			Group: rel.Group, Kind: rel.Kind, Resource: rel.Resource, ControllerOnly: rel.ControllerOnly, ClusterScoped: rel.ClusterScoped, Waiting: rel.Waiting,
		}.Map
	case "label":
		if rel.WatchedClusterScoped && !rel.ClusterScoped {
			return nil, fmt.Errorf("map[%s]: %w", spec, errLabelScope)
		}
		mapper = Label{key, target}.Map
	case "annotation":
		mapper = Annotation{key, target}.Map
	case "":
		return nil, fmt.Errorf("map: required: want one of %s", mapSpecs)
	default:
		return nil, fmt.Errorf("map[%s]: want one of %s%s", spec, mapSpecs, suggest.Hint(kind, []string{MapFunc, "owner", "label", "annotation"}))
	}
	if err := checkKey(spec, kind, key, hasKey); err != nil {
		return nil, err
	}
	return mapper, nil
}

// checkKey checks that spec has a key if, and only if, its kind takes one.
func checkKey(spec, kind, key string, hasKey bool) error {
	if kind == MapFunc || kind == "owner" {
		if hasKey {
			return fmt.Errorf("map[%s]: %s takes no key: write %q", spec, kind, kind)
		}
		return nil
	}
	if key == "" {
		return fmt.Errorf("map[%s]: the key is missing: write %q", spec, kind+":example.com/owner")
	}
	if bad := validation.IsQualifiedName(key); len(bad) > 0 {
		return fmt.Errorf("map[%s]: key: %s", spec, bad[0])
	}
	return nil
}
