// SPDX-License-Identifier: Apache-2.0

package wasmctl

// ValidateByReconcile returns a function for Webhook.Validate that runs
// reconcile on the object of the request and discards its Action. If reconcile
// returns a permanent error, the request is denied with this error. Any other
// error allows the request, because it may be over when the object is
// reconciled.
//
// The run reads the settings and the Cache as they are. Context.DryRun is true,
// and calls of the Client return an error that IsUnavailable matches, so a
// reconcile that uses the Client is checked up to its first call. The function
// judges the object itself, not its subresources. It allows updates that leave
// the generation unchanged, and updates of an object that is being deleted, so
// an object that is already wrong can be labeled and deleted.
func ValidateByReconcile(reconcile func(ctx *Context, obj Object) (Action, error)) func(*Context, Admission) Verdict {
	return func(ctx *Context, a Admission) Verdict {
		unchanged := a.Old.Exists() && a.Object.Generation() != 0 && a.Object.Generation() == a.Old.Generation()
		if !a.Object.Exists() || a.Target.Subresource != "" || a.Object.IsDeleting() || unchanged {
			return Allow()
		}
		ctx.in.dryRun = true
		if _, err := reconcile(ctx, a.Object); err != nil && classify(err).class == ErrorPermanent {
			return Verdict{Denied: &Denial{Code: 422, Reason: "Invalid", Message: err.Error()}}
		}
		return Allow()
	}
}
