package main

import (
	"errors"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// zones is the namespace of the zones. A module has no network: what stands for
// a DNS server here is a ConfigMap for each zone, which some other program
// serves. An entry's key is the hostname, its value "address owner".
const zones = "dns-system"

func zoneRef(zone string) wasmctl.ObjectRef {
	return wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: zones, Name: zone}
}

// entry is one of a zone. The zero entry is none.
type entry struct{ zone, hostname string }

// ownerOf returns who an entry belongs to, and its address; both empty if there
// is none.
func (e entry) ownerOf(zone wasmctl.Object) (address, owner string) {
	address, owner, _ = strings.Cut(zone.String("data", e.hostname), " ")
	return address, owner
}

// set makes the entry be, or returns an error for which IsConflict is true if
// somebody changed the zone meanwhile: the precondition sees to it that two
// records cannot both find a name free and take it.
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

// remove makes the entry not be. One that is gone, that is in a zone that is
// gone, or that belongs to somebody else by now is none of ours.
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

// write sets or, with nil, removes the entry's value, in the state of the zone
// that was read.
func (e entry) write(c *wasmctl.Client, zone wasmctl.Object, value any) error {
	_, err := c.Patch(zone.Ref(), wasmctl.MergePatch(wasmctl.Map{"data": wasmctl.Map{e.hostname: value}}), wasmctl.WriteOptions{
		Preconditions: wasmctl.Preconditions{UID: zone.UID(), ResourceVersion: zone.ResourceVersion()},
	})
	return err
}
