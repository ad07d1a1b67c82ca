// SPDX-License-Identifier: Apache-2.0

// Package event has the events of watched objects, as predicates and handlers
// receive them.
package event

import "sigs.k8s.io/controller-runtime/pkg/client"

// CreateEvent means that an object was created, or seen for the first time.
type CreateEvent = TypedCreateEvent[client.Object]

// UpdateEvent means that an object has changed.
type UpdateEvent = TypedUpdateEvent[client.Object]

// DeleteEvent means that an object is gone.
type DeleteEvent = TypedDeleteEvent[client.Object]

// GenericEvent is an event that does not come from a watch.
type GenericEvent = TypedGenericEvent[client.Object]

// TypedCreateEvent is a CreateEvent for a type of object.
type TypedCreateEvent[object any] struct {
	// Object is the object.
	Object object
	// IsInInitialList means that the object existed when the watch started.
	IsInInitialList bool
}

// TypedUpdateEvent is an UpdateEvent for a type of object.
type TypedUpdateEvent[object any] struct {
	// ObjectOld and ObjectNew are the object before and after the change.
	ObjectOld object
	ObjectNew object
}

// TypedDeleteEvent is a DeleteEvent for a type of object.
type TypedDeleteEvent[object any] struct {
	// Object is the last known state.
	Object object
	// DeleteStateUnknown is always false here.
	DeleteStateUnknown bool
}

// TypedGenericEvent is a GenericEvent for a type of object.
type TypedGenericEvent[object any] struct {
	// Object is the object.
	Object object
}
