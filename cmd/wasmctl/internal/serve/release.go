// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/stranded"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// releaseBatch is the number of objects that are released before the status is written again.
const releaseBatch = 500

// listing has the objects that have a finalizer of a Reconciler's modules.
type listing struct {
	batches []batch
	failure string // the reason why not all objects could be listed; may be ""
}

// batch has objects with the same finalizer, of one namespace or of all.
type batch struct {
	finalizer v1alpha1.Finalizer
	kind      kinds.Kind
	objects   []stranded.Object
	account   string // the service account that may list the objects; if empty, only the host may
	done      results
}

// identity sends requests as a service account, or as the host if it has no name.
type identity struct {
	lists  metadata.Interface
	client *kubeapi.Client
	api    *kubeapi.API
}

func (s *Server) as(account string) (*identity, error) {
	config := rest.CopyConfig(s.cfg.Cluster)
	config.Impersonate = rest.ImpersonationConfig{UserName: account}
	lists, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := kubeapi.NewClient(config)
	if err != nil {
		return nil, err
	}
	api, err := kubeapi.New(kubeapi.Config{Client: client, Resolver: s.kinds, Controller: "serve"})
	return &identity{lists: lists, client: client, api: api}, err
}

// list finds the objects. If the service account of the Reconciler may not list them, the host does.
func (l *listing) list(ctx context.Context, s *Server, o *reconciler) {
	for _, f := range o.status.Finalizers {
		if err := l.listAll(ctx, s, o, f); err != nil {
			l.failure = fmt.Sprintf("finalizer[%s]: %v; to leave the objects as they are, set spec.deletionPolicy to Orphan", f.Name, err)
			return
		}
	}
}

func (l *listing) listAll(ctx context.Context, s *Server, o *reconciler, f v1alpha1.Finalizer) error {
	kind, err := s.kinds.Resolve(ctx, f.For)
	if errors.Is(err, kinds.ErrUnknown) {
		return nil // the CRD is gone, and its objects with it
	}
	if err != nil {
		return err
	}
	namespaces := kubeapi.OrAny(f.Namespaces)
	if o.meta.Namespace != "" && kind.Namespaced {
		namespaces = []string{o.meta.Namespace} // whatever the status contains
	}
	for _, ns := range namespaces {
		err := l.listOne(ctx, s, batch{finalizer: f, kind: kind, account: o.user(s.cfg.ServiceAccount)}, ns)
		if apierrors.IsNotFound(err) {
			s.kinds.Expire() // the CRD, or its version, is gone
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) listOne(ctx context.Context, s *Server, some batch, namespace string) (err error) {
	for _, some.account = range []string{some.account, ""} {
		var as *identity
		if as, err = s.as(some.account); err != nil {
			return err
		}
		some.objects, err = some.finder(as).All(ctx, namespace, nil)
		if err == nil {
			l.batches = append(l.batches, some)
		}
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			return err
		}
	}
	return err
}

func (b *batch) finder(as *identity) *stranded.Finder {
	return &stranded.Finder{Client: as.lists, API: as.api, Kind: b.kind, Finalizer: b.finalizer.Name}
}

func (l *listing) count() (n int) {
	for i := range l.batches {
		n += len(l.batches[i].objects)
	}
	return n
}

// first returns an object, if possible one that is being deleted.
func (l *listing) first() (name string) {
	for i := range l.batches {
		for j := range l.batches[i].objects {
			o := &l.batches[i].objects[j]
			if name == "" || !o.Deleted.IsZero() {
				name = l.batches[i].kind.Name() + " " + o.Key.String()
			}
			if !o.Deleted.IsZero() {
				return name
			}
		}
	}
	return name
}

// byHost reports whether only the host may list the objects.
func (l *listing) byHost() bool {
	return slices.ContainsFunc(l.batches, func(some batch) bool { return some.account == "" })
}

// watched counts the objects that a controller, which may be nil, watches and finalizes, and those of them
// that are being deleted. Before it has listed its objects, all count. If replicas share the objects, this
// one knows only its own part, so all count then, too.
func (l *listing) watched(u *unit, c *admin.Controller) (mine, deleting int) {
	for i := range l.batches {
		some := &l.batches[i]
		if c != nil && c.Finalizer != nil && c.Finalizer.Name != some.finalizer.Name {
			continue
		}
		for _, o := range some.objects {
			if u.controller != nil && !u.server.cfg.ShareObjects {
				if stored, err := u.controller.Store().Get(o.Key); err == nil && stored == nil {
					continue
				}
			}
			mine++
			if !o.Deleted.IsZero() {
				deleting++
			}
		}
	}
	return mine, deleting
}

// release takes the finalizer off some objects. It returns the first error, or "".
func (l *listing) release(ctx context.Context, s *Server) (failure string) {
	for i := range l.batches {
		some := &l.batches[i]
		some.objects = some.objects[:min(len(some.objects), releaseBatch)]
		if len(some.objects) == 0 {
			continue
		}
		var err error
		if some.done, err = some.release(ctx, s); err != nil {
			failure = err.Error()
		}
	}
	return failure
}

// results counts released objects.
type results struct{ all, deleting, byHost int }

// release takes the finalizer off the objects, as the service account or else as the host.
func (b *batch) release(ctx context.Context, s *Server) (done results, failure error) {
	keys := make([]abi.Key, len(b.objects))
	for i := range b.objects {
		keys[i] = b.objects[i].Key
	}
	for _, account := range slices.Compact([]string{b.account, ""}) {
		as, err := s.as(account)
		if err != nil {
			return done, err
		}
		var left []abi.Key
		failure = nil
		for i, r := range b.finder(as).Release(ctx, keys, false) {
			switch {
			case r.Error != "":
				left = append(left, keys[i])
				if failure == nil {
					failure = fmt.Errorf("%s[%s]: %s", b.kind.Name(), r.Object, r.Error)
				}
				continue
			case r.Absent:
				continue
			case account == "":
				done.byHost++
			}
			done.all++
			if r.Deleting {
				done.deleting++
			}
		}
		if keys = left; len(keys) == 0 {
			break
		}
	}
	return done, failure
}

// released logs released objects, and records an event on the Reconciler. A namespace that is being deleted
// accepts no event; the event is then on the namespace.
func (s *Server) released(o *reconciler, some *batch, terminating bool) {
	done := some.done
	if done.all == 0 {
		return
	}
	note := fmt.Sprintf("took the finalizer %s off %d %s, because the %s is being deleted", some.finalizer.Name, done.all, some.kind.Name(), o.kind)
	kind, reason, lost := corev1.EventTypeNormal, reasonReleased, done.deleting
	if terminating {
		lost = done.all
	}
	if lost > 0 {
		kind, reason = corev1.EventTypeWarning, reasonLost
		note += fmt.Sprintf("; the module has not finalized %d of them, which are being deleted", lost)
	}
	if done.byHost > 0 {
		note += fmt.Sprintf("; of %d, with the rights of wasmctl itself, because the service account has none", done.byHost)
	}
	s.log(o).Warn("released objects of a deleted Reconciler from its finalizer", "reconciler", o.controller(), "reason", reason, "note", note)
	about := o.reference()
	if terminating {
		about = corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: o.meta.Namespace}
	}
	s.rt.Record(events.Event{Type: kind, Reason: reason, Action: events.ActionOf("Release", note), Note: note, Regarding: about})
}

// terminating reports whether the namespace of a Reconciler is being deleted, as far as the host may know.
func (s *Server) terminating(ctx context.Context, o *reconciler) bool {
	if o.meta.Namespace == "" {
		return false
	}
	ns, err := s.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, o.meta.Namespace, metav1.GetOptions{})
	return err == nil && ns.GetDeletionTimestamp() != nil
}
