package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newCmdPause(s streams, paused bool) *cobra.Command {
	verb, done, what := "resume", "resumed", "Resume a paused controller or object"
	long := `Objects that were triggered during the pause are reconciled, each once.`
	if paused {
		verb, done, what = "pause", "paused", "Pause a controller or an object"
		long = `Running reconciles finish and no new ones start. Watches go on, and triggers are kept until "wasmctl resume". A controller stays
paused until then or until the process ends. For an object, the process sets the annotation wasmctl.dev/paused, if it has the right
to patch it.`
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
