// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Kinds of objects in a world.
const (
	theCRDs       = "CRDs"
	theNamespace  = "namespace"
	theRole       = "role"
	theBinding    = "binding"
	theAccount    = "account"
	theDeployment = "deployment"
)

// thing is an object of a world.
type thing struct{ gone, deleting, finalizer bool }

// remove is a request to delete the object.
func (o *thing) remove() { o.deleting, o.gone = true, o.gone || !o.finalizer }

// release takes the finalizer off.
func (o *thing) release() { o.finalizer, o.gone = false, o.gone || o.deleting }

// world is an installation with one Reconciler, and what runs in a cluster, as a model.
type world struct {
	now        time.Duration
	objects    map[string]*thing
	reconciler thing

	failing bool // the module cannot finalize its objects
	running bool // the process runs modules
	ended   bool // the process
	view    view
	since   time.Duration // the start of view.since
	looked  time.Duration
}

func newWorld(failing bool) *world {
	w := &world{failing: failing, running: true, looked: -idle, reconciler: thing{finalizer: true}, objects: map[string]*thing{}}
	for _, name := range []string{theCRDs, theNamespace, theRole, theBinding, theAccount, theDeployment} {
		w.objects[name] = &thing{finalizer: name == theCRDs || name == theNamespace} // finalizers of Kubernetes' own
	}
	return w
}

func (w *world) rights() []*thing {
	return []*thing{w.objects[theRole], w.objects[theBinding], w.objects[theAccount]}
}

// permitted reports whether the process can send requests.
func (w *world) permitted() bool {
	return !slices.ContainsFunc(w.rights(), func(o *thing) bool { return o.gone })
}

// cluster is a step of Kubernetes' controllers. A namespace loses its objects in any order.
func (w *world) cluster(next int) {
	if crds := w.objects[theCRDs]; crds.deleting {
		w.reconciler.remove()
		if w.reconciler.gone {
			crds.release()
		}
	}
	account, deployment := w.objects[theAccount], w.objects[theDeployment]
	if ns := w.objects[theNamespace]; ns.deleting {
		switch next {
		case 0:
			account.remove()
		case 1:
			deployment.remove()
		default:
			w.terminate()
		}
		if account.gone && deployment.gone && w.ended {
			ns.release()
		}
	}
	if deployment.gone {
		w.terminate()
	}
}

// terminate sends SIGTERM to the process.
func (w *world) terminate() {
	if !w.view.stopping {
		w.view.stopping, w.since, w.looked = true, w.now, w.now-idle
	}
}

// finalize is a step of serve: the Reconciler is being deleted.
func (w *world) finalize() {
	if w.running && w.reconciler.deleting && !w.failing && w.permitted() {
		w.reconciler.release()
	}
}

// process is a step of a Leaver. If it is blind, it cannot reach the API server.
func (w *world) process(blind bool) {
	pause := idle
	if w.view.deleting || w.view.stopping {
		pause = busy
	}
	if w.ended || w.now-w.looked < pause {
		return
	}
	w.looked = w.now
	if w.view.unseen = blind || !w.permitted(); !w.view.unseen {
		deleting := slices.ContainsFunc(w.rights(), func(o *thing) bool { return o.deleting }) || w.view.stopping && w.objects[theNamespace].deleting
		if deleting != w.view.deleting {
			w.since = w.now
		}
		w.view.deleting, w.view.needed = deleting, !w.reconciler.gone && (!deleting || w.reconciler.finalizer)
		w.view.removed = w.objects[theDeployment].deleting
		for _, o := range w.rights() {
			if w.view.protects() {
				o.finalizer = true
			} else if !deleting {
				o.release()
			}
		}
	}
	w.view.since = w.now - w.since
	switch w.view.next() {
	case stay:
	case end:
		w.running, w.ended = false, true
	case leave:
		w.running, w.ended = false, true
		if w.permitted() {
			w.reconciler.release()
			for _, o := range w.rights() {
				o.release()
			}
		}
	}
}

// permutations calls f for each order of a list.
func permutations(list []string, f func(order []string)) {
	if len(list) == 0 {
		f(nil)
	}
	for i := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		permutations(rest, func(order []string) { f(append([]string{list[i]}, order...)) })
	}
}

// TestLeave_EachOrderOfDeletions: in whichever order the objects of an installation are deleted, all deletions end, and no finalizer is left:
// with and without the CRDs and the namespace, if a module fails, and however the steps of the process and of Kubernetes interleave.
func TestLeave_EachOrderOfDeletions(t *testing.T) {
	seed := uint64(0)
	try := func(order []string) {
		seed++
		rnd := rand.New(rand.NewPCG(seed, 1))
		w, name := newWorld(rnd.IntN(2) == 0), fmt.Sprint("seed ", seed, ": ", order)
		w.process(false) // it has run for a while
		left := order
		for w.now = idle; w.now < 2*time.Minute; w.now += time.Duration(rnd.IntN(400)) * time.Millisecond {
			switch rnd.IntN(4) {
			case 0:
				if len(left) > 0 {
					w.objects[left[0]].remove()
					left = left[1:]
				}
			case 1:
				w.cluster(rnd.IntN(3))
			case 2:
				w.finalize()
			default:
				w.process(rnd.IntN(5) == 0)
			}
		}
		for _, deleted := range order {
			if o := w.objects[deleted]; !o.gone {
				t.Errorf("%s: the deletion of the %s does not end: %+v", name, deleted, w)
			}
		}
		if w.reconciler.finalizer || !w.ended {
			t.Errorf("%s: %+v", name, w)
		}
		if !slices.Contains(order, theCRDs) && w.reconciler.deleting {
			t.Errorf("%s: the Reconciler is deleted", name)
		}
	}
	rights := []string{theRole, theBinding, theAccount, theDeployment}
	for _, list := range [][]string{rights, append([]string{theCRDs}, rights...), append([]string{theNamespace}, rights...), append([]string{theCRDs, theNamespace}, rights...)} {
		permutations(list, func(order []string) { try(order) })
	}
	for range 500 {
		try([]string{theNamespace})
		try([]string{theBinding, theDeployment})
	}
}

// TestLeave_ADeploymentAlone: if only the Deployment is deleted, perhaps to create it again, the process ends and leaves the Reconciler as it
// is. If it is only replaced, it ends at once.
func TestLeave_ADeploymentAlone(t *testing.T) {
	w := newWorld(false)
	w.process(false)
	w.objects[theDeployment].remove()
	for w.now = idle; w.now < time.Minute; w.now += 100 * time.Millisecond {
		w.cluster(0)
		w.finalize()
		w.process(false)
	}
	if !w.ended || w.reconciler != (thing{finalizer: true}) || !w.objects[theAccount].finalizer {
		t.Errorf("%+v", w)
	}
	if got := (view{needed: true, stopping: true}).next(); got != end {
		t.Errorf("a replaced pod: %v", got)
	}
}
