// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"

// declared is the desired state in an Action. It is immutable: each method of
// Action makes a copy.
type declared struct {
	children     []any
	prune, force bool
	status       any
	hasStatus    bool
}

// Apply returns an action that declares children of the object. After the run,
// the host applies them in their order by server-side apply, and makes the
// object their controller. Each child is a complete object as for Client.Apply:
// a *Builder, a Map, a struct or an Object.
//
//	return wasmctl.Apply(deployment, service).Prune().Status(status), nil
//
// A run that declares its result makes no calls, so you can test, compare and
// repeat it as a function of its object. It needs the same rights as the calls:
// patch and create, and delete for Prune. The field manager is that of the
// Client.
//
// A child without a namespace gets the namespace of the object. The host checks
// all children before it applies the first. If it then cannot apply one, the
// children before it stay applied, the run fails, and the error names the
// child. The host does not change a child that another object controls: it
// returns a conflict.
func Apply(children ...any) Action { return AwaitChange().Apply(children...) }

// Apply returns a copy of the action with more children; see the function
// Apply.
func (a Action) Apply(children ...any) Action {
	d := a.copy()
	d.children = append(append([]any(nil), d.children...), children...)
	return a
}

// Prune deletes the objects that the object controls and that this Action does
// not list, after the host has applied the children. It deletes only kinds of
// Manifest.Owns. Without children it deletes all of them.
func (a Action) Prune() Action {
	a.copy().prune = true
	return a
}

// Force takes over fields of the children and of the status from other field
// managers. A controller usually wants that for the fields that it owns.
// Without Force, a field of another manager is a conflict.
func (a Action) Force() Action {
	a.copy().force = true
	return a
}

// Status declares the status of the object: a *Builder, a Map, a struct or a
// Value. The host applies it last. It is the only part of an Action that the
// host also uses if the run returns an error, so a failed run can report its
// reason.
func (a Action) Status(status any) Action {
	d := a.copy()
	d.status, d.hasStatus = status, true
	return a
}

// copy replaces the declarations of a by a copy, and returns the copy.
func (a *Action) copy() *declared {
	d := declared{}
	if a.declared != nil {
		d = *a.declared
	}
	a.declared = &d
	return &d
}

// appendResult writes a Result (abi/ABI.md, section 4). The run fails if the
// result cannot be encoded.
func appendResult(dst []byte, a Action, err error) []byte {
	start := len(dst)
	var b wire.Builder
	if err == nil {
		b = wire.NewBuilder(dst)
		if bad := a.appendTo(&b); bad != nil {
			b = failed(dst[:start], WithReason(bad, "BadResult"))
		}
	} else {
		b = failed(dst, err)
		if bad := a.declared.appendStatus(&b); bad != nil {
			b = failed(dst[:start], &noted{err, bad})
		}
	}
	if out := b.End(); len(out)-start <= wire.MaxBytes {
		return out
	}
	return appendFailed(dst[:start], WithReason(Permanent(wire.ErrTooLarge), "BadResult"))
}

// noted is an error with a second error that occurred while the first was
// reported.
type noted struct{ err, also error }

func (n *noted) Error() string { return n.err.Error() + "; and " + n.also.Error() }

func (n *noted) Unwrap() error { return n.err }

func (a Action) appendTo(b *wire.Builder) error {
	if a.requeue {
		b.Text("action", "requeue")
		b.Int("after_ms", millis(a.after))
	} else {
		b.Text("action", "await")
	}
	d := a.declared
	if d == nil {
		return nil
	}
	if len(d.children) > 0 {
		if err := b.Value("apply", d.children); err != nil {
			return &located{"result: apply: encode", err}
		}
	}
	b.Bool("prune", d.prune)
	b.Bool("force", d.force)
	return d.appendStatus(b)
}

func (d *declared) appendStatus(b *wire.Builder) error {
	if d == nil || !d.hasStatus {
		return nil
	}
	if err := b.Value("status", d.status); err != nil {
		return &located{"result: status: encode", err}
	}
	return nil
}
