package client

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
)

// TestNewWithWatch_OnlyItsWatchIsAnError: who makes one, and reads and writes with it, works.
func TestNewWithWatch_OnlyItsWatchIsAnError(t *testing.T) {
	c, err := NewWithWatch(&rest.Config{}, Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Watch(t.Context(), &corev1.PodList{}); err == nil || !strings.Contains(err.Error(), "Watches") {
		t.Errorf("error %v", err)
	}
}
