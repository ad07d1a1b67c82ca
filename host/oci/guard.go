// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// ErrBarred means that a registry which the operator has not named has an address that is reserved for those that are.
// It matches ErrRefused.
var ErrBarred = errors.New("its address is permitted only for registries that the operator names: it belongs to this machine, or is link-local or reserved")

// Guard restricts registries that are named by users who do not operate the process. Without a Guard, the host of a
// reference may have any address. In both cases, a redirect or a token service on another host leads to no address that
// is loopback, link-local, multicast, or the metadata service of a cloud.
type Guard struct {
	// Named reports whether the operator has named a host, with its port. It may then have any address.
	Named func(host string) bool
	// Bars reports whether other hosts may not have an address, in addition to those above. It may be nil.
	Bars func(netip.Addr) bool
}

// metadata are the addresses of metadata services that are not link-local.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}

// nat64 is the prefix of IPv6 addresses that contain an IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// bars reports whether a host that the operator has not named may not have an address.
func (g *Guard) bars(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return !ip.IsGlobalUnicast() || slices.Contains(metadata, ip) || g != nil && g.Bars != nil && g.Bars(ip)
}

// control is the Control of a net.Dialer: it judges the address after the name was resolved.
func (g *Guard) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && g.bars(at.Addr()) {
		err = ErrBarred
	}
	return err
}

// Allow is a list of patterns for references. An empty list allows all.
type Allow []key

// ParseAllow reads patterns of the form HOST[:PORT][/PATH]. HOST can have the globs of pull secrets, such as
// *.example.com. PATH matches the repository with this name, and all below it.
func ParseAllow(patterns []string) (Allow, error) {
	var a Allow
	for _, p := range patterns {
		k, err := newKey(strings.TrimSuffix(p, "/"), Credential{})
		if err != nil {
			return nil, fmt.Errorf("%q: %w: want HOST, HOST:PORT or HOST/REPOSITORY", p, err)
		}
		a = append(a, k)
	}
	return a, nil
}

// Allows reports whether a pattern matches the reference.
func (a Allow) Allows(r Ref) bool {
	return len(a) == 0 || slices.ContainsFunc(a, func(k key) bool {
		return k.matchesHost(dockerHub(r.Host)) && (k.path == "" || strings.HasPrefix("/"+r.Repository+"/", k.path+"/"))
	})
}

// Names reports whether a pattern without a glob has this host.
func (a Allow) Names(host string) bool {
	return slices.ContainsFunc(a, func(k key) bool { return k.host == dockerHub(host) && !strings.ContainsAny(k.host, `*?[\`) })
}
