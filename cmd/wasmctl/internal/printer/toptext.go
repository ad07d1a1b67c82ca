// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// TopLines returns a line for each controller and object.
func TopLines(top *admin.Top, s Screen) []string {
	controllers := &table{columns: append(append([]column{{title: "CONTROLLER", minWidth: 12}}, loadColumns...),
		column{title: "DECODED/S", right: true, omit: 3}, column{title: "WORKERS", right: true, omit: 4}, column{title: "MEMORY", right: true})}
	for i := range top.Controllers {
		c := &top.Controllers[i]
		row := append([]any{c.Name}, loadCells(&c.Load)...)
		controllers.row("", append(row, humanize.Bytes(c.Decoded), fmt.Sprintf("%d/%d", c.Running, c.Workers), humanize.Bytes(c.Memory+c.HostMemory))...)
	}
	objects := &table{columns: append([]column{{title: "OBJECT", minWidth: 20}, {title: "CONTROLLER", minWidth: 12}}, loadColumns...)}
	for i := range top.Objects {
		o := &top.Objects[i]
		objects.row("", append([]any{o.Object, o.Controller}, loadCells(&o.Load)...)...)
	}
	return append(append(controllers.render(s.width, s.coloured), ""), objects.render(s.width, s.coloured)...)
}

// loadColumns are the common columns of controllers and objects.
var loadColumns = []column{
	{title: "BUSY", right: true},
	{title: "GUEST", right: true},
	{title: "HOST", right: true},
	{title: "RUNS/S", right: true},
	{title: "ERRORS/S", right: true, omit: 1},
	{title: "REQUESTS/S", right: true, omit: 2},
	{title: "FUEL/S", right: true, omit: 5},
}

func loadCells(l *history.Load) []any {
	percent := func(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
	return []any{
		percent(l.Busy), percent(l.Guest), percent(l.Host), fmt.Sprintf("%.2f", l.Runs), fmt.Sprintf("%.2f", l.Errors),
		fmt.Sprintf("%.2f", l.Requests), humanize.Count(l.Fuel),
	}
}
