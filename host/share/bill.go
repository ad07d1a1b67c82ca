// SPDX-License-Identifier: Apache-2.0

package share

import (
	"slices"
	"sync"
)

// Bill charges memory that several modules use only once: to the account that has used it
// longest. The zero Bill is ready for use, by any number of goroutines.
type Bill struct {
	mu    sync.Mutex
	bytes int64      // guarded by mu
	users []*Account // in the order in which they came, the first of them pays; guarded by mu
}

// Join adds a user, which leaves later and is not a user yet. The first one is charged for this many bytes. If it
// cannot have them, it does not become a user, and the error is that of Account.Take.
func (b *Bill) Join(a *Account, bytes int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.users) == 0 {
		if err := a.Take(bytes); err != nil {
			return err
		}
		b.bytes = bytes
	}
	b.users = append(b.users, a)
	return nil
}

// Leave removes a user. If it has paid, the next one is charged, even beyond its share: the
// memory is in use, and stays the same.
func (b *Bill) Leave(a *Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.users, a)
	b.users = slices.Delete(b.users, i, i+1)
	if i > 0 {
		return
	}
	if len(b.users) > 0 {
		b.users[0].force(b.bytes) // first, so that no other account takes the bytes
	}
	a.Give(b.bytes)
}
