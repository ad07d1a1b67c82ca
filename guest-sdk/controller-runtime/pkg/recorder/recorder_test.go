// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"testing"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// TestRecorders_CanBeAssignedToThoseOfClientGo: programs store the recorders of
// a manager in fields of client-go's types.
func TestRecorders_CanBeAssignedToThoseOfClientGo(t *testing.T) {
	var p recorder.Provider
	use := func(p recorder.Provider) (record.EventRecorder, events.EventRecorder) {
		return p.GetEventRecorderFor("a"), p.GetEventRecorder("b")
	}
	if p != nil {
		use(p)
	}
	t.Log("it compiles")
}
