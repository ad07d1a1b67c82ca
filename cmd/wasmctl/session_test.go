package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// TestSession_OwnedKindsAreWatchedWhereTheirOwnersAre: an owner reference does
// not cross namespaces, so the namespace of the owners wins.
func TestSession_OwnedKindsAreWatchedWhereTheirOwnersAre(t *testing.T) {
	namespaced := kubeapi.Kind{Namespaced: true}
	for name, c := range map[string]struct {
		owners []string
		all    bool
		kind   kubeapi.Kind
		watch  []string
		want   []string
	}{
		"the owners' namespace":           {[]string{"a"}, false, namespaced, nil, []string{"a"}},
		"it wins over the manifest's":     {[]string{"a"}, false, namespaced, []string{"b"}, []string{"a"}},
		"owners everywhere: the manifest": {nil, false, namespaced, []string{"b"}, []string{"b"}},
		"-A wins over the manifest":       {nil, true, namespaced, []string{"b"}, nil},
		"cluster-scoped: none":            {[]string{"a"}, false, kubeapi.Kind{}, nil, nil},
	} {
		o := &controllerOptions{allNamespaces: c.all}
		got := o.placed(watched{watch: abi.Watch{Namespaces: c.owners}}, watched{Kind: c.kind, watch: abi.Watch{Map: abi.MapOwner, Namespaces: c.watch}})
		if diff := cmp.Diff(c.want, got.watch.Namespaces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestErrorText_SaysAReasonOnce(t *testing.T) {
	said := &abi.ResultError{Reason: "Unavailable", Message: "api_apply: Unavailable: down\n"}
	for want, err := range map[string]error{
		"api_apply: Unavailable: down": said,
		"NoLuck: no luck":              &abi.ResultError{Reason: "NoLuck", Message: "no luck"},
		"plain":                        &abi.ResultError{Message: "plain"},
		"around: Unavailable: api_apply: Unavailable: down": fmt.Errorf("around: %w", said),
		"else": errors.New(" else\n"),
	} {
		if got := errorText(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestActionText_RoundsForPeople(t *testing.T) {
	for after, want := range map[time.Duration]string{
		232193422: "requeue after 232ms", 1829577695: "requeue after 1.83s", 300 * time.Second: "requeue after 5m0s", 1500: "requeue after 1.5µs", 0: "requeue after 0s",
	} {
		if got := actionText(abi.Action{Requeue: true, After: after}); got != want {
			t.Errorf("%d: %q, want %q", after, got, want)
		}
	}
	if got := actionText(abi.Action{}); got != "await change" {
		t.Error(got)
	}
}
