// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// zones is the namespace of the zones. A module has no network access: in this example, each zone
// is a ConfigMap, which another program serves. The key of an entry is the hostname, its value
// "address owner".
const zones = "dns-system"

func zoneRef(zone string) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: zones, Name: zone}
}

// entry is an entry of a zone. The zero value means no entry.
type entry struct{ zone, hostname string }

// ownerOf returns the owner and the address of an entry; both are empty if there is none.
func (e entry) ownerOf(zone wasmctl.Object) (address, owner string) {
	address, owner, _ = strings.Cut(zone.String("data", e.hostname), " ")
	return address, owner
}

// set creates or updates the entry. If the zone was changed meanwhile, IsConflict is true for the
// error: the precondition prevents two records from claiming the same free name.
func (e entry) set(c *wasmctl.Client, address, owner string) error {
	zone, err := c.Get(zoneRef(e.zone), wasmctl.GetOptions{})
	if err != nil {
		return err
	}
	have, by := e.ownerOf(zone)
	switch {
	case by != "" && by != owner:
		err := errors.New("zone[" + e.zone + "]: " + e.hostname + " belongs to " + by)
		return wasmctl.WithReason(wasmctl.Permanent(err), "NameTaken")
	case have == address && by == owner:
		return nil
	}
	return e.write(c, zone, address+" "+owner)
}

// remove removes the entry, unless it or its zone is gone, or it belongs to another owner by now.
func (e entry) remove(c *wasmctl.Client, owner string) error {
	if e == (entry{}) {
		return nil
	}
	zone, err := c.Get(zoneRef(e.zone), wasmctl.GetOptions{})
	if wasmctl.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, by := e.ownerOf(zone); by != owner {
		return nil
	}
	return e.write(c, zone, nil)
}

// write sets the entry's value or, if it is nil, removes it, in the zone as it was read.
func (e entry) write(c *wasmctl.Client, zone wasmctl.Object, value any) error {
	_, err := c.Patch(zone.Ref(), wasmctl.MergePatch(wasmctl.Map{"data": wasmctl.Map{e.hostname: value}}), wasmctl.WriteOptions{
		Preconditions: wasmctl.Preconditions{UID: zone.UID(), ResourceVersion: zone.ResourceVersion()},
	})
	return err
}
