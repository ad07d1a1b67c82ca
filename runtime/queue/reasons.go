// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// MaxReasons is how many different reasons of one run are stored. If there are more, the run has the number of the others.
const MaxReasons = 8

// Reasons are the reasons for reconciling an object: those of all requests that were merged into one run. The zero value has none.
type Reasons struct {
	// First is the reason of the first request. Any other reason replaces Requeue and Retry, which move to More: a trigger absorbs the
	// timer (rule 3) and is the real cause of the run.
	First abi.Reason
	// More are the further reasons in order, without repetitions; at most MaxReasons-1.
	More []abi.Reason
	// Dropped counts reasons that did not fit. A reason that recurs is counted again.
	Dropped int
}

// MergeReasons merges the reasons of another request for the same object into those of the queued one. It allocates only if a reason is
// new.
//
// As with append, the result may share the memory of queued, which must not be used again. It never shares that of next.
func MergeReasons(queued, next Reasons) Reasons {
	if next.First != (abi.Reason{}) {
		queued.add(next.First)
	}
	for _, r := range next.More {
		queued.add(r)
	}
	queued.Dropped += next.Dropped
	return queued
}

// Texts returns the reasons as text, the first one first.
func (r *Reasons) Texts() []string {
	if r.First == (abi.Reason{}) {
		return []string{}
	}
	out := []string{r.First.String()}
	for i := range r.More {
		out = append(out, r.More[i].String())
	}
	if r.Dropped > 0 {
		out = append(out, fmt.Sprintf(moreReasons, r.Dropped))
	}
	return out
}

const moreReasons = "%d more"

// MarshalJSON implements json.Marshaler: a list of Texts.
func (r Reasons) MarshalJSON() ([]byte, error) { return json.Marshal(r.Texts()) }

// UnmarshalJSON implements json.Unmarshaler. It takes the whole text of a reason
// as its type, so Texts are those that were marshaled.
func (r *Reasons) UnmarshalJSON(js []byte) error {
	var texts []string
	if err := json.Unmarshal(js, &texts); err != nil {
		return err
	}
	*r = Reasons{}
	for _, text := range texts {
		if _, err := fmt.Sscanf(text, moreReasons, &r.Dropped); err != nil {
			r.add(abi.Reason{Type: abi.ReasonType(text)})
		}
	}
	return nil
}

func (r *Reasons) add(reason abi.Reason) {
	switch {
	case r.First == abi.Reason{}:
		r.First = reason
		return
	case r.First == reason || slices.Contains(r.More, reason):
		return
	case ofTimer(r.First) && !ofTimer(reason):
		r.First, reason = reason, r.First
	}
	if len(r.More) == MaxReasons-1 {
		r.Dropped++
		return
	}
	r.More = append(r.More, reason)
}

// ofTimer reports whether the request was caused only by the passing of time.
func ofTimer(r abi.Reason) bool { return r.Type == abi.ReasonRequeue || r.Type == abi.ReasonRetry }
