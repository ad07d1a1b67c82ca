// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "example.dev/multiversion/api/v1"
)

// TestConvert_ThereAndBackIsTheSame: the API server converts an object at each read, so nothing may get lost.
func TestConvert_ThereAndBackIsTheSame(t *testing.T) {
	b := Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}},
		Spec:       BackupSpec{Schedule: Schedule{Minute: "*/5", DayOfWeek: "1-5"}, Image: "i", Paused: true},
		Status:     BackupStatus{Conditions: []metav1.Condition{{Type: "Ready"}}},
	}
	var hub storagev1.Backup
	if err := b.ConvertTo(&hub); err != nil || hub.Spec.Schedule != "*/5 * * * 1-5" || !hub.Spec.Suspend {
		t.Fatalf("%+v, %v", hub.Spec, err)
	}
	var back Backup
	if err := back.ConvertFrom(&hub); err != nil || !reflect.DeepEqual(back, b) {
		t.Errorf("%+v, %v", back, err)
	}
	hub.Spec.Schedule = "@daily"
	if back.ConvertFrom(&hub) == nil {
		t.Error("a schedule without five fields is converted")
	}
}
