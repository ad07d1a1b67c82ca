// SPDX-License-Identifier: Apache-2.0

package client

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// TestNewWithWatch_OnlyItsWatchIsAnError checks that reads and writes of the
// client work.
func TestNewWithWatch_OnlyItsWatchIsAnError(t *testing.T) {
	c, err := NewWithWatch(&rest.Config{}, Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Watch(t.Context(), &corev1.PodList{}); err == nil || !strings.Contains(err.Error(), "Watches") {
		t.Errorf("error %v", err)
	}
}
