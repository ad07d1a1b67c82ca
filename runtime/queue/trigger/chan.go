package trigger

import "context"

// Chan emits what a program sends: kube-rs's reconcile_on and reconcile_all_on,
// controller-runtime's source.Channel. A sender waits until its trigger is taken;
// it should give up when the controller's context ends.
type Chan struct {
	// Name names it for people.
	Name string
	// C brings the triggers. Closing it ends the Chan, nil never sends.
	C <-chan Trigger
}

// Run implements Source.
func (c Chan) Run(ctx context.Context, emit Emit) error {
	for {
		select {
		case t, more := <-c.C:
			if !more {
				return nil
			}
			emit(ctx, t)
		case <-ctx.Done():
			return nil
		}
	}
}

// String implements Source.
func (c Chan) String() string { return "channel " + c.Name }
