package trigger

import "context"

// Chan emits the triggers that a program sends, like kube-rs's reconcile_on and reconcile_all_on, and controller-runtime's source.Channel.
// A sender blocks until its trigger is received; it should give up when the controller's context ends.
type Chan struct {
	// Name is a human-readable name.
	Name string
	// C carries the triggers. Closing it ends the Chan; a nil channel never sends.
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
