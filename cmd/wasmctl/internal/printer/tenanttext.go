// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// TenantLines returns the accounts of the tenants of a process, those with the most memory first.
func TenantLines(st *admin.Status, now time.Time, s Screen) []string {
	head := cutTo(processLine(st, now)+", "+humanize.Plural(len(st.Tenants), "tenant"), s.width)
	if len(st.Tenants) == 0 {
		return []string{head}
	}
	t := &table{columns: []column{
		{title: "TENANT", minWidth: 16},
		{title: "MEMORY", right: true},
		{title: "PINNED", right: true, omit: 1},
		{title: "SHARE", right: true},
		{title: "OF SHARE", right: true},
		{title: "REFUSED", right: true},
		{title: "RECLAIMED", right: true},
		{title: "COMPUTING", right: true},
		{title: "LOG", right: true, omit: 3},
		{title: "DROPPED", right: true, omit: 2},
	}}
	list := slices.SortedStableFunc(slices.Values(st.Tenants), func(a, b admin.Tenant) int { return cmp.Compare(b.Memory, a.Memory) })
	for i := range list {
		a := &list[i]
		colour := ""
		if a.Memory > a.Share {
			colour = colourWarn
		}
		t.row(colour, text.Line(a.Name), humanize.Bytes(a.Memory), humanize.Bytes(a.Pinned), humanize.Bytes(a.Share),
			fmt.Sprintf("%d%%", 100*a.Memory/max(1, a.Share)), a.Refused, a.Reclaimed, short(a.Computing), humanize.Bytes(a.LogBytes), a.LogLinesDropped)
	}
	return append([]string{head, ""}, t.render(s.width, s.coloured)...)
}
