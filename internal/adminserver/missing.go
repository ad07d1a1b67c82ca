// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/suggest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// lookLimit bounds the request to the API server for an object that the cache does not
// have.
const lookLimit = time.Second

// maxNames is the maximum number of names that are compared with a misspelled one.
const maxNames = 10_000

// The states of an object that the cache does not have, in addition to admin.StateAbsent.
const (
	notWatched  = "not watched"
	notSelected = "not selected"
	notCached   = "not cached"
)

// missing explains why the cache does not have the object; state is empty if it does.
func (v *verdict) missing(ctx context.Context) (state, why string) {
	if v.stored != nil {
		v.uid = v.stored.UID()
		return "", ""
	}
	w := v.c.Kind().Watch
	if len(w.Namespaces) > 0 && !slices.Contains(w.Namespaces, v.key.Namespace) {
		return notWatched, fmt.Sprintf("namespace %s is not watched, only %s", v.key.Namespace, strings.Join(w.Namespaces, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	o, err := v.c.Resource(v.c.Kind().Kind, v.key.Namespace).Get(ctx, v.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return admin.StateAbsent, fmt.Sprintf("the API server has no %s %s%s", v.c.Kind().Name(), v.key, v.similar())
	case err != nil:
		return notCached, fmt.Sprintf("the object is not in the cache, and the API server does not answer: %v", err)
	}
	if w.LabelSelector+w.FieldSelector != "" {
		v.e.Runs = deselected(v.e.Runs, o.GetCreationTimestamp().Time)
	}
	if selector, err := labels.Parse(w.LabelSelector); err == nil && !selector.Matches(labels.Set(o.GetLabels())) {
		return notSelected, fmt.Sprintf("its labels (%s) do not match the selector %s", cmp.Or(labels.Set(o.GetLabels()).String(), "none"), w.LabelSelector)
	}
	v.uid = string(o.GetUID())
	if w.FieldSelector != "" {
		return notSelected, fmt.Sprintf("the object exists but the watch does not have it: it does not match the field selector %s, or the watch lags behind", w.FieldSelector)
	}
	return notCached, "the object exists but the watch has not received it yet"
}

// similar names an object that was probably meant by the name of one that has never existed: the one of this name in
// another namespace, or one with a similar name.
func (v *verdict) similar() string {
	if len(v.e.Runs) > 0 {
		return ""
	}
	var names []string
	for _, o := range v.c.Runtime.Objects() {
		switch key := o.Ref(); {
		case key.Name == v.key.Name:
			return fmt.Sprintf("; did you mean %q?", key)
		case key.Namespace == v.key.Namespace && len(names) < maxNames:
			names = append(names, key.Name)
		}
	}
	return suggest.Hint(v.key.Name, names)
}

// deselected returns the runs of an object that exists although the watch does not have it. A watch with a selector reports an object that
// it no longer selects as deleted.
func deselected(runs []history.Run, created time.Time) []history.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		r := &runs[i]
		if r.Result != history.ResultSkipped || r.Error != applier.ErrObjectNotFound.Error() || r.Started.Before(created) {
			continue
		}
		r.Error = "the object is no longer selected"
		r.Reasons.More = slices.Clone(r.Reasons.More)
		for j := range r.Reasons.More {
			deselect(&r.Reasons.More[j])
		}
		deselect(&r.Reasons.First)
	}
	return runs
}

func deselect(r *abi.Reason) {
	if r.Type == abi.ReasonObjectDeleted {
		r.Type = "ObjectDeselected"
	}
}

// stranded explains that the object still has the finalizer of the controller.
func (v *verdict) stranded() {
	view, finalizer := v.c.Stranded()
	for _, o := range view.Objects {
		if o.Key == v.key {
			v.report("", "it has the finalizer %s, but this controller finalizes only objects that it watches: unless another controller does, a deletion waits; select it again, or run wasmctl release %s %s",
				finalizer, v.c.Name(), v.key)
		}
	}
}
