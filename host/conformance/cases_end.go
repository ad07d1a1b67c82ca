// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// endCases are about runs that fail, and about many runs.
func endCases() []Case {
	return []Case{
		{"end.trap", 2, "a trap ends the call, and the next one is as if nothing had happened", func(p *probe) error {
			return p.ends(do("trap", "text", "größe: on purpose"), abi.FailureTrap)
		}},
		{"end.trap-finalize", 2, "the same in finalize", func(p *probe) error {
			_, err := p.run(abi.ExportFinalize, ask(caseObject(object{"steps": list{do("trap", "text", "x")}})))
			return first(failedBy(err, abi.FailureTrap), alive(p))
		}},
		{"end.timeout", 2, "a guest that spins runs out of time", onHost(shortHost, func(p *probe) error {
			return p.ends(do("spin"), abi.FailureTimeout)
		})},
		{"end.memory", 2, "a guest that grows runs out of memory", onHost(smallHost, func(p *probe) error {
			return p.ends(do("grow"), abi.FailureMemory)
		})},
		{"end.trap-policy", 2, "error_policy of a trapped run is called on a fresh instance", func(p *probe) error {
			_, err := p.steps(do("trap", "text", "x"))
			return first(failedBy(err, abi.FailureTrap), p.policy(&abi.Failure{
				ID: "r", Key: key, Kind: abi.FailureTrap, Attempt: 1, FirstFailed: time.UnixMilli(nowMS),
				Error: abi.ResultError{Class: abi.ErrorTransient, Message: "unreachable"},
			}, abi.Action{}))
		}},
		{"many.steady", 2, "2,000 runs of different sizes need at most an eighth more memory than the first 500", func(p *probe) error {
			return p.steady(2000, 500)
		}},
	}
}

// ends makes the guest fail a run, and then checks that it still works.
func (p *probe) ends(step object, kind abi.FailureKind) error {
	_, err := p.steps(step)
	return first(failedBy(err, kind), alive(p))
}

var alive = reports(do("echo", "value", "alive"), "value", "alive")

// failedBy checks that a call failed with this kind.
func failedBy(err error, kind abi.FailureKind) error {
	call, ok := errors.AsType[*abi.CallError](err)
	if !ok || call.Kind != kind {
		return instead(err, "a failure of kind "+string(kind))
	}
	return nil
}

// steady makes runs with reads and answers of different sizes, and compares the guest's memory
// after the first ones with that at the end.
func (p *probe) steady(runs, first int) error {
	var before int64
	replaced := p.rig.module.Recycled()[string(abi.LimitHighWater)]
	for i := range runs {
		if i == first {
			before = p.rig.budget.Stats().Used
		}
		size := i * 7919 % 40_000
		p.rig.api.set(abi.Response{Body: encode(object{"data": strings.Repeat("a", size)})})
		if _, err := p.steps(do("op", "op", "api_get", "request", configMap("a")), do("echo", "value", strings.Repeat("v", size/2))); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
	}
	if n := p.rig.module.Recycled()[string(abi.LimitHighWater)]; n > replaced+1 { // earlier cases have left it large
		return fmt.Errorf("memory: %d instances in %d runs had so much that the host replaced them", n-replaced, runs)
	}
	if after := p.rig.budget.Stats().Used; after > before+before/8 { // a garbage collector needs time
		return fmt.Errorf("memory: %d bytes after %d runs, %d after %d", before, first, after, runs)
	}
	return nil
}
