// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
)

const (
	// idle and busy are the times between two looks at the installation.
	idle, busy = 5 * time.Second, time.Second
	// lookTime is the maximum duration of a look.
	lookTime = 3 * time.Second
	// stopTime is the time in which the other replicas stop their modules.
	stopTime = 5 * time.Second
	// leaveTime is the maximum duration of leaving. The API server accepts the token of a deleted service account for a minute.
	leaveTime = 40 * time.Second
)

// Leaver lets a process of wasmctl serve leave the cluster when its installation is deleted in any order, such as by kubectl delete -f. While
// Reconcilers need the process, the service account, the ClusterRole and its binding have the finalizer of wasmctl serve. When one of them is
// deleted, the process releases the Reconcilers, then the rights, and ends.
type Leaver struct {
	Server *serve.Server
	// Cluster has the identity of the process. Other identities than the service account of an installation have nothing to leave.
	Cluster *rest.Config
	// Replicated means that other replicas may run modules.
	Replicated bool
	Log        *slog.Logger

	client    dynamic.Interface
	home      *abi.Key // the namespace and the name of the installation; nil before it is known
	elsewhere bool     // the process does not have the service account of an installation
}

// Run calls run, and cancels its context when ctx ends. If the installation is being deleted, it first lets modules finalize objects, and
// afterwards releases what is left. When force is closed, it does neither.
func (l *Leaver) Run(ctx context.Context, force <-chan struct{}, run func(context.Context) error) (err error) {
	if l.client, err = dynamic.NewForConfig(l.Cluster); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	var failure error
	go func() {
		defer close(ended)
		failure = run(running)
	}()
	leaving := l.watch(ctx, force, ended) == leave
	stop()
	<-ended
	if leaving {
		return errors.Join(failure, l.leave(context.WithoutCancel(ctx)))
	}
	return failure
}

// watch returns the last move of the process, leave or end.
func (l *Leaver) watch(ctx context.Context, force, ended <-chan struct{}) move {
	stop, v, since := ctx.Done(), view{}, time.Now()
	for {
		before := v
		err := l.look(context.WithoutCancel(ctx), &v)
		if v.unseen = err != nil && l.home != nil; err != nil {
			l.Log.Debug("cannot see the installation", "error", err.Error())
		}
		if v.deleting != before.deleting {
			since = time.Now()
		}
		v.since = time.Since(since)
		if m := v.next(); m != stay {
			return m
		}
		pause := time.After(idle)
		switch {
		case l.elsewhere:
			pause = nil
		case v.deleting || v.stopping:
			pause = time.After(busy)
		}
		select {
		case <-force:
			return end
		case <-stop:
			stop, v.stopping, since = nil, true, time.Now()
		case <-ended:
			ended, v.stopping, since = nil, true, time.Now()
		case <-pause:
		}
	}
}

// look updates a view. If it fails, the view stays as it is. It puts the finalizer on the rights, or takes it off.
func (l *Leaver) look(ctx context.Context, v *view) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if err := l.find(ctx); err != nil || l.elsewhere {
		return err
	}
	deleting, protected := false, 0
	rights := rightsOf(*l.home)
	for _, o := range rights {
		right, err := l.get(ctx, o)
		if err != nil {
			return err
		}
		deleting = deleting || right.GetDeletionTimestamp() != nil
		if slices.Contains(right.GetFinalizers(), serve.Finalizer) {
			protected++
		}
	}
	if v.stopping {
		v.removed = l.goes(ctx, Object{deployments, *l.home})
		deleting = deleting || l.goes(ctx, Object{namespaces, abi.Key{Name: l.home.Namespace}}) // it deletes the service account soon
	}
	all, err := l.bound(ctx, deleting)
	if err != nil {
		return err
	}
	v.deleting, v.needed = deleting, len(all) > 0
	switch want := v.protects(); {
	case deleting || want && protected == len(rights) || !want && protected == 0:
		return nil
	case want:
		return l.mark(ctx, addFinalizer)
	}
	return l.mark(ctx, removeFinalizer)
}

// find sets home or elsewhere.
func (l *Leaver) find(ctx context.Context) error {
	if l.home != nil || l.elsewhere {
		return nil
	}
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	review, err := l.client.Resource(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	user, _, _ := unstructured.NestedString(review.Object, "status", "userInfo", "username")
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		l.elsewhere = true
		return nil
	}
	var home abi.Key
	home.Namespace, home.Name, _ = strings.Cut(account, ":")
	role, err := l.get(ctx, rightsOf(home)[0])
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	l.home = &home
	if err != nil || !isRightOf(role, home) {
		l.home, l.elsewhere = nil, true
	}
	return nil
}

func (l *Leaver) get(ctx context.Context, o Object) (*unstructured.Unstructured, error) {
	return l.client.Resource(o.GVR).Namespace(o.Key.Namespace).Get(ctx, o.Key.Name, metav1.GetOptions{})
}

// goes reports whether an object is being deleted, or gone.
func (l *Leaver) goes(ctx context.Context, o Object) bool {
	object, err := l.get(ctx, o)
	return apierrors.IsNotFound(err) || err == nil && object.GetDeletionTimestamp() != nil
}

// bound returns Reconcilers that need the process. While its rights are not being deleted, one is enough, and each counts. Afterwards, it
// returns all that have the finalizer, and none if another installation can take it off.
func (l *Leaver) bound(ctx context.Context, deleting bool) ([]unstructured.Unstructured, error) {
	if !deleting {
		return l.Server.Reconcilers(ctx, 1)
	}
	bindings, err := l.client.Resource(clusterRoleBindings).List(ctx, metav1.ListOptions{LabelSelector: deploy.LabelNamespace})
	if err != nil || len(others(bindings.Items, *l.home)) > 0 {
		return nil, err
	}
	all, err := l.Server.Reconcilers(ctx, 0)
	return slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return !slices.Contains(o.GetFinalizers(), serve.Finalizer) }), err
}

// mark changes all of the rights.
func (l *Leaver) mark(ctx context.Context, patch string) error {
	rights := rightsOf(*l.home)
	return together(ctx, l.Cluster, len(rights), func(ctx context.Context, client dynamic.Interface, i int) error {
		_, err := client.Resource(rights[i].GVR).Namespace(rights[i].Key.Namespace).Patch(ctx, rights[i].Key.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("%v: patch: %w", rights[i], err)
		}
		return nil
	})
}

// leave releases the Reconcilers and the objects of their modules, and then the rights.
func (l *Leaver) leave(ctx context.Context) error {
	l.Log.Warn("the rights of this process are being deleted: it takes its finalizers off, and ends", "installation", l.home.String())
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	var pause time.Duration
	if l.Replicated {
		pause = stopTime
	}
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		err := l.release(ctx)
		if err == nil {
			err = l.mark(ctx, removeFinalizer)
		}
		if err == nil {
			return nil
		}
		if _, gone := l.get(ctx, rightsOf(*l.home)[0]); apierrors.IsForbidden(gone) || apierrors.IsUnauthorized(gone) {
			l.Log.Warn("the rights of this process are gone; another replica takes the finalizers off before it lets them go", "error", err.Error())
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("installation[%s]: cannot take all finalizers off; wasmctl uninstall does: %w", l.home, err)
		}
		pause = time.Second
	}
}

// release takes the finalizers off, for all Reconcilers that have one.
func (l *Leaver) release(ctx context.Context) error {
	all, err := l.bound(ctx, true)
	errs := []error{err}
	for i := range all {
		n, err := l.Server.Release(ctx, &all[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%s]: %w", all[i].GetKind(), keyOf(&all[i]), err))
			continue
		}
		l.Log.Warn("released a Reconciler, without cleanup", "reconciler", keyOf(&all[i]).String(), "objects", n)
	}
	return errors.Join(errs...)
}
