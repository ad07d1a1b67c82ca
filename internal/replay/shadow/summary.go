// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// Summary counts the results of comparisons.
type Summary struct {
	// Runs and Objects were compared. Different is the number of runs that differ; OfWrites, OfActions and OfErrors count the kinds of
	// differences.
	Runs      int `json:"runs"`
	Objects   int `json:"objects"`
	Different int `json:"different"`
	OfWrites  int `json:"ofWrites"`
	OfActions int `json:"ofActions"`
	OfErrors  int `json:"ofErrors"`
	// Dropped runs were not compared, because the other module is slower than the live one, or the controller was never idle.
	Dropped int `json:"dropped"`

	objects map[abi.Key]struct{}
}

// Add counts a compared run of an object.
func (s *Summary) Add(key abi.Key, found []Difference) {
	if s.objects == nil {
		s.objects = map[abi.Key]struct{}{}
	}
	s.objects[key] = struct{}{}
	s.Runs, s.Objects = s.Runs+1, len(s.objects)
	if len(found) == 0 {
		return
	}
	s.Different++
	for what, n := range map[string]*int{OfWrite: &s.OfWrites, OfAction: &s.OfActions, OfError: &s.OfErrors} {
		if slices.ContainsFunc(found, func(d Difference) bool { return d.Of == what }) {
			*n++
		}
	}
}

// String formats the summary for people.
func (s *Summary) String() string {
	text := fmt.Sprintf("compared %d runs of %d objects: %d the same, %d differ", s.Runs, s.Objects, s.Runs-s.Different, s.Different)
	if s.Different > 0 {
		text += fmt.Sprintf(" (in writes %d, in the action %d, in the error %d)", s.OfWrites, s.OfActions, s.OfErrors)
	}
	if s.Dropped > 0 {
		text += fmt.Sprintf("; %d were not compared because the controller was busy", s.Dropped)
	}
	return text
}
