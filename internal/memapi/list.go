package memapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// list serves a GET of a resource: a page, if the request has a limit.
func (s *Server) list(r *Request) (any, error) {
	refs, err := s.selected(r)
	if err != nil {
		return nil, err
	}
	meta := map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)}
	if limit, err := strconv.Atoi(r.query.Get("limit")); err == nil && limit > 0 && len(refs) > limit {
		meta["continue"] = refs[limit-1].namespace + "/" + refs[limit-1].name
		meta["remainingItemCount"] = int64(len(refs) - limit)
		refs = refs[:limit]
	}
	items := make([]any, len(refs))
	for i, at := range refs {
		item := maps.Clone(r.versioned(s.objects[at]))
		if r.Kind.builtIn { // the list says it for all
			delete(item, "apiVersion")
			delete(item, "kind")
		}
		items[i] = item
	}
	return map[string]any{
		"apiVersion": r.Kind.GroupVersion().String(), "kind": r.Kind.Kind + "List", "metadata": meta, "items": items,
	}, nil
}

// selected returns the objects of a list, in order, from where it goes on.
func (s *Server) selected(r *Request) ([]ref, error) {
	selector, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	byField, err := fields.ParseSelector(r.query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	for _, req := range byField.Requirements() {
		if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: the in-memory API server has no field label %s", req.Field))
		}
	}
	after := ref{GroupResource: r.Kind.gvr().GroupResource()}
	after.namespace, after.name, _ = strings.Cut(r.query.Get("continue"), "/")
	var refs []ref
	for at, object := range s.objects {
		o := unstructured.Unstructured{Object: object}
		if at.GroupResource != after.GroupResource || r.Namespace != "" && at.namespace != r.Namespace || compareRefs(at, after) <= 0 ||
			!selector.Matches(labels.Set(o.GetLabels())) ||
			!byField.Matches(fields.Set{"metadata.name": at.name, "metadata.namespace": at.namespace}) {
			continue
		}
		refs = append(refs, at)
	}
	slices.SortFunc(refs, compareRefs)
	return refs, nil
}
