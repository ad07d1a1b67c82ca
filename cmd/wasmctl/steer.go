package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// steerOptions are what every command needs that talks to a running process.
type steerOptions struct {
	socket  string
	streams streams
}

func (o *steerOptions) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.socket, "socket", "", "socket of the process (default: that of the one that runs here)")
}

// client finds the process.
func (o *steerOptions) client(ctx context.Context) (*admin.Client, error) {
	path := o.socket
	if path == "" {
		var err error
		if path, err = admin.Find(ctx); err != nil {
			return nil, withCode(exitUsage, err)
		}
	}
	return admin.NewClient(path), nil
}

// steerError says what else there is where a controller is not known.
func steerError(ctx context.Context, c *admin.Client, err error) error {
	switch {
	case errors.Is(err, admin.ErrInvalid):
		return withCode(exitUsage, err)
	case !errors.Is(err, admin.ErrUnknown):
		return err
	}
	st, statusErr := c.Status(ctx)
	if statusErr != nil {
		return withCode(exitUsage, err)
	}
	names := make([]string, len(st.Controllers))
	for i, c := range st.Controllers {
		names[i] = c.Name
	}
	return withCode(exitUsage, fmt.Errorf("%w; the process runs: %s", err, strings.Join(names, ", ")))
}

func newCmdTrigger(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var all bool
	cmd := &cobra.Command{
		Use:   "trigger CONTROLLER [NAMESPACE/]NAME...",
		Short: "Ask a running controller to reconcile objects",
		Long: `Asks a running controller to reconcile objects now, as if they had changed. With --all it reconciles every object, at
low priority, behind what has changed.`,
		Example: `  wasmctl trigger configmapgenerator default/hello
  wasmctl trigger configmapgenerator --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("CONTROLLER is missing"))
			}
			keys, err := parseKeys(args[1:])
			switch {
			case err != nil:
				return usageError(cmd, err)
			case all == (len(keys) > 0):
				return usageError(cmd, errors.New("want the names of objects, or --all"))
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			n, err := c.Trigger(cmd.Context(), args[0], keys)
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			_, err = fmt.Fprintf(s.out, "triggered %s\n", plural(n, "object"))
			return err
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all objects of the controller")
	return cmd
}

// parseKeys reads the names of objects.
func parseKeys(names []string) ([]abi.Key, error) {
	keys := make([]abi.Key, len(names))
	for i, name := range names {
		ns, rest, ok := strings.Cut(name, "/")
		if !ok {
			ns, rest = "", name
		}
		if rest == "" || ok && ns == "" || strings.Contains(rest, "/") {
			return nil, fmt.Errorf("object %q: want NAMESPACE/NAME, or NAME for a cluster-scoped kind", name)
		}
		keys[i] = abi.Key{Namespace: ns, Name: rest}
	}
	return keys, nil
}

func newCmdPause(s streams, paused bool) *cobra.Command {
	verb, done, what := "resume", "resumed", "Let a paused controller, or object, reconcile again"
	long := `What has been asked for in the meantime is reconciled, each object once.`
	if paused {
		verb, done, what = "pause", "paused", "Stop a controller, or an object, from being reconciled"
		long = `Running reconciles finish. Watches go on, and what is asked for is kept until "wasmctl resume". A controller is paused until
then, or the process ends. An object is paused by the annotation wasmctl.dev/paused, which the process gives it if it may patch it.`
	}
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use: verb + " CONTROLLER [[NAMESPACE/]NAME...]", Short: what, Long: what + ".\n" + long,
		Example: "  wasmctl " + verb + " configmapgenerator\n  wasmctl " + verb + " configmapgenerator default/hello",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("CONTROLLER is missing"))
			}
			keys, err := parseKeys(args[1:])
			if err != nil {
				return usageError(cmd, err)
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				err = c.Pause(cmd.Context(), args[0], paused)
			}
			for _, key := range keys {
				if err == nil {
					err = c.PauseObject(cmd.Context(), args[0], key, paused)
				}
			}
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			_, err = fmt.Fprintf(s.out, "%s %s\n", done, strings.Join(args, " "))
			return err
		},
	}
	o.bind(cmd)
	return cmd
}
