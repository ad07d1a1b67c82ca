// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
)

// scope selects objects of one resource.
type scope struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// scope parses the selectors of a list or a watch.
func (r *Request) scope() (sc scope, err error) {
	sc.namespace = r.Namespace
	if sc.labels, err = labels.Parse(r.Query.Get("labelSelector")); err != nil {
		return sc, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	if sc.fields, err = fields.ParseSelector(r.Query.Get("fieldSelector")); err != nil {
		return sc, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	for _, req := range sc.fields.Requirements() {
		if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
			return sc, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: the in-memory API server has no field label %s", req.Field))
		}
	}
	return sc, nil
}

// has reports whether a state is that of an existing object in the scope; st may be nil.
func (sc *scope) has(st *state) bool {
	return st != nil && !st.gone && (sc.namespace == "" || sc.namespace == st.key.Namespace) && sc.labels.Matches(labels.Set(st.unstructured().GetLabels())) &&
		sc.fields.Matches(fields.Set{"metadata.name": st.key.Name, "metadata.namespace": st.key.Namespace})
}

// list serves a GET of a resource. If the request has a limit, it returns one page.
func (s *Server) list(r *Request, fault *Fault) (any, error) {
	sc, err := r.scope()
	if err != nil {
		return nil, err
	}
	version, after := s.version, abi.Key{}
	switch more := r.Query.Get("continue"); {
	case more != "":
		if version, after, err = parseContinue(more); err != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
		if version < s.compacted {
			return nil, apierrors.NewResourceExpired("the provided continue parameter is too old")
		}
	case r.Query.Get("resourceVersion") == "0":
		version = max(version-fault.Lag, min(s.compacted, version))
	default:
		if asked, _ := strconv.ParseInt(r.Query.Get("resourceVersion"), 10, 64); asked > s.version {
			return nil, tooLarge(asked, s.version)
		}
	}
	all := s.table(&r.Kind).at(version, s.version)
	states := slices.DeleteFunc(slices.Clone(all), func(st *state) bool { return !sc.has(st) || st.key.Compare(after) <= 0 })
	meta := map[string]any{"resourceVersion": strconv.FormatInt(version, 10)}
	limit, _ := strconv.Atoi(r.Query.Get("limit")) // 0 if there is none
	if fault.PageSize > 0 && limit > 0 {
		limit = min(limit, fault.PageSize)
	}
	if limit > 0 && len(states) >= limit && sc.goesOn(all, states[limit-1].key) {
		last := states[limit-1].key
		meta["continue"] = fmt.Sprintf("%d %s/%s", version, last.Namespace, last.Name)
		if sc.labels.Empty() && sc.fields.Empty() {
			meta["remainingItemCount"] = int64(len(states) - limit)
		}
		states = states[:limit]
	} else {
		s.listed[r.scopeID()] = true
	}
	items := make([]any, len(states))
	for i, st := range states {
		item := maps.Clone(r.versioned(st.object))
		if r.Kind.builtIn { // the list has the kind of all items
			delete(item, "apiVersion")
			delete(item, "kind")
		}
		items[i] = item
	}
	return map[string]any{
		"apiVersion": r.Kind.GroupVersion().String(), "kind": r.Kind.Kind + "List", "metadata": meta, "items": items,
	}, nil
}

// tooLarge is the API server's error for a version that it has not reached.
func tooLarge(asked, version int64) error {
	e := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, version), 1)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return e
}

// goesOn reports whether any object after the key may be in the list. Like the API server,
// it does not check whether the object matches the selectors.
func (sc *scope) goesOn(all []*state, last abi.Key) bool {
	if _, one := sc.fields.RequiresExactMatch("metadata.name"); one {
		return false
	}
	return slices.ContainsFunc(all, func(st *state) bool {
		return (sc.namespace == "" || sc.namespace == st.key.Namespace) && st.key.Compare(last) > 0
	})
}

// parseContinue parses the token of a page.
func parseContinue(token string) (version int64, after abi.Key, err error) {
	number, key, _ := strings.Cut(token, " ")
	after.Namespace, after.Name, _ = strings.Cut(key, "/")
	version, err = strconv.ParseInt(number, 10, 64)
	return version, after, err
}

// watch serves a watch, a stream of events.
func (s *Server) watch(r *http.Request, req *Request, fault *Fault) (*http.Response, error) {
	sc, err := req.scope()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.newStream(r.Context(), req, sc, fault)
	if err != nil {
		return nil, err
	}
	s.streams = append(s.streams, w)
	return respond(r, http.StatusOK, w), nil
}
