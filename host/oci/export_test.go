// SPDX-License-Identifier: Apache-2.0

package oci

import "net/netip"

// Highest is highest for the text of a range.
func Highest(s string, tags []string) string {
	v, err := parseRange(s)
	if err != nil {
		return err.Error()
	}
	return highest(v, tags)
}

// Barred is bars.
func Barred(g *Guard, ip netip.Addr) bool { return g.bars(ip) }
