// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// newRecorder returns the recorder of the events of the process itself, which is not limited by the
// rights of a module or of the user that a controller impersonates.
func (rt *Runtime) newRecorder() (*events.Recorder, error) {
	var gate kubeapi.Gate
	if rt.shared.Gate != nil {
		gate = rt.shared.Gate
	}
	return kubeapi.NewRecorder(rt.users.Own.Client, gate, events.Config{Controller: "host", PerNamespace: true, Logger: rt.log})
}

// Record records a Kubernetes event with the identity of the process. It reports whether the event
// will probably be recorded: too many events about one object, or about the objects of one namespace,
// are discarded. It never waits. Events are sent while the Runtime runs and, with an Election, while
// this replica may write.
func (rt *Runtime) Record(e events.Event) bool { return rt.events.Record(e) }

// recordAbout records an event about a controller as a whole, which watches these namespaces.
func (rt *Runtime) recordAbout(watched []string, e events.Event) {
	e.Regarding = rt.eventsAbout(watched)
	rt.Record(e)
}

// eventsAbout returns the object that events about a controller as a whole refer to, where
// a user of kubectl would look: the Lease of the election, otherwise the pod, or outside of
// a cluster the first watched namespace.
func (rt *Runtime) eventsAbout(watched []string) corev1.ObjectReference {
	if o := rt.opts.Election; o != nil {
		lease := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: o.namespace(), Name: o.Name}
		if o.Shards > 0 { // there are several Leases
			lease.Name = shard.RecordName(o.Name)
		}
		return lease
	}
	if ns := podNamespace(); ns != "" {
		if name, err := os.Hostname(); err == nil { // the host name of a pod is the pod's name
			return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: name}
		}
	}
	ns := plan.EventNamespace(watched)
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: ns, Name: ns}
}

// news records an event about the slots that replicas share.
func (rt *Runtime) news(n shard.News) {
	e := events.Event{Type: corev1.EventTypeNormal, Reason: n.Reason, Action: "Share", Note: n.Note}
	if n.Warning {
		e.Type = corev1.EventTypeWarning
	}
	rt.recordAbout(nil, e)
}
