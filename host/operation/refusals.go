// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
)

// Refusals are the answers to operations beyond a limit. Each is made once for an instance,
// because a guest may repeat the operation as fast as it can.
type Refusals struct {
	env     *Env
	answers map[abi.LimitName]abi.Response
}

// NewRefusals returns the refusals for an instance.
func NewRefusals(env *Env) Refusals { return Refusals{env: env} }

// TooManyCalls refuses an operation beyond the limit of a run.
func (r *Refusals) TooManyCalls() abi.Response {
	return r.again(abi.LimitHostCalls, "the limit of %d operations per run is reached")
}

// again refuses an operation; what receives the limit.
func (r *Refusals) again(name abi.LimitName, what string) abi.Response {
	res, ok := r.answers[name]
	if ok {
		r.env.Share.Hits.Add(name)
		return res
	}
	res = r.over(name, fmt.Sprintf(what, r.env.Limits.Get(name)))
	if r.answers == nil {
		r.answers = map[abi.LimitName]abi.Response{}
	}
	r.answers[name] = res
	return res
}

// over refuses an operation that exceeds a limit.
func (r *Refusals) over(name abi.LimitName, what string) abi.Response {
	text := r.env.LimitError(name, what, nil).Error()
	if name == abi.LimitRequestBytes {
		return Refuse(abi.StatusTooLarge, "TooLarge", text)
	}
	return Refuse(abi.StatusBudget, "BudgetExceeded", text)
}
