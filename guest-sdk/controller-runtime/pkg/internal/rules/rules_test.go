package rules

import (
	"reflect"
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

func TestCapabilities_AreWhatWasLinked(t *testing.T) {
	got, err := parse(`[{"group":"","resource":"pods","subresources":["status"],"verbs":["get"],"names":["a"]}]`)
	want := []wasmctl.Capability{{Resource: "pods", Subresources: []string{"status"}, Verbs: []string{"get"}, Names: []string{"a"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parse(""); got != nil || err != nil {
		t.Errorf("nothing linked: %v, %v", got, err)
	}
	if _, err := parse("{"); err == nil {
		t.Error("what cannot be read is no error")
	}
}
