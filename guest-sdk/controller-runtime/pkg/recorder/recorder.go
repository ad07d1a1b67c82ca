// Package recorder has the interface of what makes event recorders.
package recorder

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// Provider makes recorders of Kubernetes events.
type Provider interface {
	// GetEventRecorderFor returns a recorder whose events name the component.
	GetEventRecorderFor(name string) record.EventRecorder
	// GetEventRecorder returns the same with the signature of the newer events
	// API.
	GetEventRecorder(name string) events.EventRecorder
}
