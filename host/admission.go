// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
)

// Admit calls validate or default, according to the type of the webhook, for one request to
// the API server. It sets ConfigGen, Deadline and Caps of a. Several calls may run at once;
// more wait for a free instance until ctx ends. The error is ErrNoHook without that export,
// an *abi.ResultError if the guest could not decide, or an *abi.CallError if it trapped, took
// too long or returned invalid output.
func (m *Module) Admit(ctx context.Context, t abi.WebhookType, a *abi.Admission) (abi.AdmissionResult, error) {
	return m.admit(ctx, nil, t, a)
}

// Convert calls convert, which returns the objects of c in another version, in their order.
// It sets ConfigGen, Deadline and Caps of c. The caller checks identity and version of the
// objects. The errors are those of Admit.
func (m *Module) Convert(ctx context.Context, c *abi.Conversion) ([][]byte, error) {
	return m.convert(ctx, nil, c)
}

// Admit is Module.Admit of the candidate. Unlike the other methods it may be called by any
// goroutine, and during Promote. Once another revision is live, the error is ErrClosed.
func (c *Candidate) Admit(ctx context.Context, t abi.WebhookType, a *abi.Admission) (abi.AdmissionResult, error) {
	return c.module.admit(ctx, c.rev, t, a)
}

// Convert is Module.Convert of the candidate; see Admit.
func (c *Candidate) Convert(ctx context.Context, conv *abi.Conversion) ([][]byte, error) {
	return c.module.convert(ctx, c.rev, conv)
}

func (m *Module) admit(ctx context.Context, rev *revision, t abi.WebhookType, a *abi.Admission) (res abi.AdmissionResult, err error) {
	export := (&abi.Webhook{Type: t}).Export()
	err = m.enter(ctx, rev, export, m.shared.admissionSlots, func(rev *revision, in *instance.Instance) instance.Message {
		in.Run.ID, in.Run.Key = a.ID, a.Key
		a.ConfigGen, a.Deadline, a.Caps = in.Desk.Settings.Gen, rev.deadline(ctx), rev.caps
		msg := instance.Message{First: a.Old, Second: a.Object}
		in.Scratch, msg.Split = abi.AppendAdmissionHead(in.Scratch[:0], a)
		msg.Head = in.Scratch
		return msg
	}, func(in *instance.Instance, v uint64) error {
		b, err := in.Result(v)
		if err != nil {
			return err
		}
		if res, err = abi.DecodeAdmissionResult(b); err != nil {
			return &instance.OutputError{Err: err}
		}
		if res.Object != nil && (t == abi.WebhookValidate || a.Object == nil) {
			return instance.Outputf("admission: an object for a request of which it cannot change the object")
		}
		in.Spec.CountUnknown(export, res.Unknown)
		return nil
	})
	if err == nil && res.Error != nil {
		m.last.Load().spec.HideInError(res.Error)
		err = fmt.Errorf("guest[%s]: %w", export, res.Error)
	}
	return res, err
}

func (m *Module) convert(ctx context.Context, rev *revision, c *abi.Conversion) ([][]byte, error) {
	var res abi.ConversionResult
	err := m.enter(ctx, rev, abi.ExportConvert, m.shared.admissionSlots, func(rev *revision, in *instance.Instance) instance.Message {
		in.Run.ID, in.Run.Key = c.ID, abi.Key{}
		c.ConfigGen, c.Deadline, c.Caps = in.Desk.Settings.Gen, rev.deadline(ctx), rev.caps
		in.Scratch = abi.AppendConversion(in.Scratch[:0], c)
		return instance.Message{Head: in.Scratch, Split: len(in.Scratch)}
	}, func(in *instance.Instance, v uint64) error {
		b, err := in.Result(v)
		if err != nil {
			return err
		}
		if res, err = abi.DecodeConversionResult(b, len(c.Objects)); err != nil {
			return &instance.OutputError{Err: err}
		}
		in.Spec.CountUnknown(abi.ExportConvert, res.Unknown)
		return nil
	})
	if err == nil && res.Error != nil {
		m.last.Load().spec.HideInError(res.Error)
		err = fmt.Errorf("guest[%s]: %w", abi.ExportConvert, res.Error)
	}
	return res.Objects, err
}
