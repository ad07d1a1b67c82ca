// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Backup is the content of a Server at one time.
type Backup struct {
	tables  map[schema.GroupResource]*table
	version int64
}

// Backup returns the content of the server.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Backup{copied(s.tables), s.version}
}

// Restore replaces the content of the server, including its versions, by that of a backup, as a restore
// of etcd does. UIDs are not assigned again. Open watches end, and one that resumes from a later version
// is silent until the server reaches that version.
func (s *Server) Restore(b *Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables, s.version = copied(b.tables), b.version
	for _, w := range s.streams {
		w.finish(Reset)
	}
	s.wake()
}

func copied(tables map[schema.GroupResource]*table) map[schema.GroupResource]*table {
	copies := make(map[schema.GroupResource]*table, len(tables))
	for gr, t := range tables {
		copies[gr] = &table{GroupResource: gr, objects: maps.Clone(t.objects), log: slices.Clone(t.log)}
	}
	return copies
}
