package wasmctl

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"

// declared is what an Action wants to be true of the cluster. It is never
// changed: each method of Action makes a copy.
type declared struct {
	children     []any
	prune, force bool
	status       any
	hasStatus    bool
}

// Apply declares children of the object: the host applies them after the run,
// in their order, by server-side apply, and makes the object their controller.
// Each is a whole object as for Client.Apply: a *Builder, a Map, a struct or an
// Object.
//
//	return wasmctl.Apply(deployment, service).Prune().Status(status), nil
//
// A run that declares makes no call, so that it can be tested, compared and
// repeated as a function of its object. The rights that it needs are those of
// the calls: patch and create, and delete for Prune. The field manager is that
// of the Client.
//
// A child without a namespace is in that of the object. All are checked before
// the first is applied; if one of several cannot be applied all the same, those
// before it stay so, and the run is a failed one, whose error names the child. A
// child that another object controls is left alone, and is a conflict.
func Apply(children ...any) Action { return AwaitChange().Apply(children...) }

// Apply is the action with more children; see the function of this name.
func (a Action) Apply(children ...any) Action {
	d := a.copy()
	d.children = append(append([]any(nil), d.children...), children...)
	return a
}

// Prune deletes, after the children were applied, those objects of the kinds of
// Manifest.Owns that the object controls and that this Action does not list.
// Without children it deletes them all.
func (a Action) Prune() Action {
	a.copy().prune = true
	return a
}

// Force takes fields of the children and of the status over from other field
// managers, as a controller wants for what is its own. Else such a field is a
// conflict.
func (a Action) Force() Action {
	a.copy().force = true
	return a
}

// Status declares the status of the object, applied last: a *Builder, a Map, a
// struct or a Value. It is the one part of an Action that counts beside an
// error: a run that fails can say why.
func (a Action) Status(status any) Action {
	d := a.copy()
	d.status, d.hasStatus = status, true
	return a
}

// copy gives a its own copy of what it declares, and returns that.
func (a *Action) copy() *declared {
	d := declared{}
	if a.declared != nil {
		d = *a.declared
	}
	a.declared = &d
	return &d
}

// appendResult writes a Result (abi/ABI.md, section 4). What cannot be written
// makes the run a failed one.
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

// noted is an error with another one that came of it.
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
			return &encodeError{"result: apply", err}
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
		return &encodeError{"result: status", err}
	}
	return nil
}
