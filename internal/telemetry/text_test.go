// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"fmt"
	"testing"

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

// TestReasonText_ListsTwo: the text of a run with two reasons has both.
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
