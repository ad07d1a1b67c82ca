// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Errors of ParseRef; match them with errors.Is.
var (
	// ErrNoNamespace means that the object's kind has namespaces and the text contains none.
	ErrNoNamespace = errors.New("a namespace is required: write namespace/name")
	// ErrNamespace means that the object's kind has no namespaces and the text contains one.
	ErrNamespace = errors.New("the kind is cluster-scoped: write only the name")
)

// Scope determines how objects of a kind are named.
type Scope struct {
	// ClusterScoped means that objects of the kind have no namespace.
	ClusterScoped bool
	// Namespace is the default namespace for a name without one. If empty, the namespace must be given. It is ignored if ClusterScoped.
	Namespace string
}

// ParseRef parses "name" or "namespace/name" into the unique reference of the object (rule 1): with a namespace if, and only if, its kind
// has namespaces. In addition to ErrNoNamespace and ErrNamespace, it rejects names that cannot be part of a URL of the API. It does not
// allocate if the text is valid.
func ParseRef(text string, scope Scope) (reflector.ObjectRef, error) {
	namespace, name, qualified := strings.Cut(text, "/")
	switch {
	case !qualified && scope.ClusterScoped:
		namespace, name = "", text
	case !qualified:
		namespace, name = scope.Namespace, text
		if namespace == "" {
			return reflector.ObjectRef{}, ErrNoNamespace
		}
	case scope.ClusterScoped:
		return reflector.ObjectRef{}, ErrNamespace
	default:
		if err := checkSegment("namespace", namespace); err != nil {
			return reflector.ObjectRef{}, err
		}
	}
	if err := checkSegment("name", name); err != nil {
		return reflector.ObjectRef{}, err
	}
	return reflector.ObjectRef{Namespace: namespace, Name: name}, nil
}

// maxSegment is the longest name that the API server stores.
const maxSegment = 253

func checkSegment(what, s string) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if len(s) > maxSegment {
		return fmt.Errorf("%s is longer than %d bytes", what, maxSegment)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return fmt.Errorf("%s %q: has an invalid character", what, s)
		}
	}
	if bad := content.IsPathSegmentName(s); len(bad) > 0 {
		return fmt.Errorf("%s %q: %s", what, s, bad[0])
	}
	return nil
}
