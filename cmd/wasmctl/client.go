// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// steerOptions are the common options of the commands that talk to a running process.
type steerOptions struct {
	socket  string
	streams streams
}

func (o *steerOptions) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.socket, "socket", "", "Connect to this `socket` (default: that of the only process on this machine)")
}

// client returns a client of the process at the socket, or of the only process.
func (o *steerOptions) client(ctx context.Context) (*admin.Client, error) {
	path := o.socket
	if path == "" {
		var err error
		if path, err = admin.Find(ctx); err != nil {
			return nil, failure.Usage.Wrap(err)
		}
	}
	return admin.NewClient(path), nil
}

// steerError adds the known controllers to an error about an unknown one, and classifies usage
// errors.
func steerError(ctx context.Context, c *admin.Client, err error) error {
	switch {
	case errors.Is(err, admin.ErrInvalid):
		return failure.Usage.Wrap(err)
	case !errors.Is(err, admin.ErrUnknown):
		return err
	}
	st, statusErr := c.Status(ctx)
	if statusErr != nil {
		return failure.Usage.Wrap(err)
	}
	return failure.Usage.Wrap(runsThese(err, namesOf(&st)))
}

// clientOf returns a client of the process, and the names of its controllers.
func (o *steerOptions) clientOf(ctx context.Context) (*admin.Client, []string, error) {
	c, err := o.client(ctx)
	if err != nil {
		return nil, nil, err
	}
	st, err := c.Status(ctx)
	return c, namesOf(&st), err
}
