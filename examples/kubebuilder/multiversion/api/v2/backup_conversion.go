// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"cmp"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	storagev1 "example.dev/multiversion/api/v1"
)

// ConvertTo converts this Backup to v1.
func (b *Backup) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*storagev1.Backup)
	if !ok {
		return fmt.Errorf("convert to %T: want a Backup of v1", hub)
	}
	s := b.Spec.Schedule
	fields := []string{s.Minute, s.Hour, s.DayOfMonth, s.Month, s.DayOfWeek}
	for i := range fields {
		fields[i] = cmp.Or(fields[i], "*")
	}
	to.ObjectMeta = b.ObjectMeta
	to.Spec = storagev1.BackupSpec{Schedule: strings.Join(fields, " "), Image: b.Spec.Image, Suspend: b.Spec.Paused}
	to.Status = storagev1.BackupStatus(b.Status)
	return nil
}

// ConvertFrom converts a Backup of v1 to this version.
func (b *Backup) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*storagev1.Backup)
	if !ok {
		return fmt.Errorf("convert from %T: want a Backup of v1", hub)
	}
	fields := strings.Fields(from.Spec.Schedule)
	if len(fields) != 5 {
		return fmt.Errorf("schedule %q: want five fields", from.Spec.Schedule)
	}
	for i := range fields {
		if fields[i] == "*" {
			fields[i] = ""
		}
	}
	b.ObjectMeta = from.ObjectMeta
	b.Spec = BackupSpec{
		Schedule: Schedule{Minute: fields[0], Hour: fields[1], DayOfMonth: fields[2], Month: fields[3], DayOfWeek: fields[4]},
		Image:    from.Spec.Image, Paused: from.Spec.Suspend,
	}
	b.Status = BackupStatus(from.Status)
	return nil
}
