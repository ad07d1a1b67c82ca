// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/internal/text"
)

// record creates an event as the host itself.
func (s *Server) record(ctx context.Context, kind, reason, note string, about corev1.ObjectReference) error {
	ns := cmp.Or(about.Namespace, metav1.NamespaceDefault)
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&eventsv1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: about.Name + "-", Namespace: ns},
		EventTime:  metav1.NowMicro(), Regarding: about, Type: kind, Reason: reason, Action: "Delete", Note: text.Truncate(note, events.MaxNote),
		ReportingController: "wasmctl.dev/serve", ReportingInstance: "wasmctl.dev/serve",
	})
	if err != nil {
		return err
	}
	_, err = s.client.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).Namespace(ns).Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	return err
}
