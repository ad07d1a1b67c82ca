package telemetry

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

func TestErrorText_SaysAReasonOnce(t *testing.T) {
	said := &abi.ResultError{Reason: "Unavailable", Message: "api_apply: Unavailable: down\n"}
	for want, err := range map[string]error{
		"api_apply: Unavailable: down": said,
		"NoLuck: no luck":              &abi.ResultError{Reason: "NoLuck", Message: "no luck"},
		"plain":                        &abi.ResultError{Message: "plain"},
		"around: Unavailable: api_apply: Unavailable: down": fmt.Errorf("around: %w", said),
		"else": errors.New(" else\n"),
	} {
		if got := ErrorText(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestActionText_RoundsForPeople(t *testing.T) {
	for after, want := range map[time.Duration]string{
		232193422: "requeue after 232ms", 1829577695: "requeue after 1.83s", 300 * time.Second: "requeue after 5m0s", 1500: "requeue after 1.5µs", 0: "requeue after 0s",
	} {
		if got := ActionText(abi.Action{Requeue: true, After: after}); got != want {
			t.Errorf("%d: %q, want %q", after, got, want)
		}
	}
	if got := ActionText(abi.Action{}); got != "await change" {
		t.Error(got)
	}
}

// TestReasonText_ListsTwo: of a run with two reasons both are said.
func TestReasonText_ListsTwo(t *testing.T) {
	var r queue.Reasons
	for _, step := range []struct {
		next abi.ReasonType
		want string
	}{{abi.ReasonObjectUpdated, "ObjectUpdated"}, {abi.ReasonConfigChanged, "ObjectUpdated, ConfigChanged"}, {abi.ReasonResync, "ObjectUpdated, ConfigChanged and 1 more"}} {
		r = queue.MergeReasons(r, queue.Reasons{First: abi.Reason{Type: step.next}})
		if got := ReasonText(&r); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}
