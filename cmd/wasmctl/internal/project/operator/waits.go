// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"go/ast"
	"go/constant"
	"time"
)

const ofWait = "k8s.io/apimachinery/pkg/util/wait."

// waits are functions with a time limit, or that wait, and the index of the argument with the time.
var waits = map[string]int{
	"time.Sleep": 0, "context.WithTimeout": 1, "context.WithTimeoutCause": 1,
	ofWait + "Poll": 1, ofWait + "PollImmediate": 1,
	ofWait + "PollWithContext": 2, ofWait + "PollImmediateWithContext": 2, ofWait + "PollUntilContextTimeout": 2,
}

// wait reports a call that may last longer than a run. Functions of the main package are no part of runs.
func (u *usage) wait(call *ast.CallExpr) {
	name := nameOf(u.callee(call))
	at, ok := waits[name]
	if !ok || u.main || at >= len(call.Args) {
		return
	}
	value := u.info.Types[call.Args[at]].Value
	if value == nil {
		return
	}
	ns, _ := constant.Int64Val(constant.ToInt(value)) // the type is time.Duration, so it fits
	if d := time.Duration(ns); d > u.timeout {
		u.find(call, shorten(name), &advice{
			Warn, fmt.Sprintf("may last %v, and a run ends after %v", d, u.timeout),
			"return RequeueAfter to wait, or set limits.timeout in wasmctl.yaml and --timeout of wasmctl run", nil,
		})
	}
}
