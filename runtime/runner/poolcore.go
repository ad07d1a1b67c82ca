// SPDX-License-Identifier: Apache-2.0

package runner

import "slices"

// poolCore decides which client gets a slot. It is a plain data structure; Pool locks it.
type poolCore struct {
	limit   int
	clients []*client
	taken   int    // slots in use or granted, over all clients
	shared  int    // the part of taken beyond the first slot of each client
	waiting int    // clients that want slots
	asked   uint64 // number of the last wait
}

// client is the share of one Runner in a Pool. All fields except wake are guarded by Pool.mu.
type client struct {
	wake    func()
	taken   int    // slots in use or granted
	granted int    // slots that were granted and are not in use yet
	wants   int    // slots that were refused and are still wanted
	asked   uint64 // position among the waiting clients
}

// take gives a client a slot; if none is available, it records how many the client wants.
func (c *poolCore) take(m *client, wants int) bool {
	switch {
	case m.granted > 0:
		m.granted--
		return true
	case c.may(m) && (m.taken == 0 || c.waiting == 0): // free slots beyond the reserved ones belong to the waiting clients
		c.give(m)
		return true
	}
	c.want(m, wants)
	return false
}

// want sets how many slots a client wants. A client that wanted none before goes to the end of the queue.
func (c *poolCore) want(m *client, wants int) {
	switch {
	case m.wants == 0 && wants > 0:
		c.waiting++
		c.asked++
		m.asked = c.asked
	case m.wants > 0 && wants == 0:
		c.waiting--
	}
	m.wants = wants
}

// may reports whether a client may have one more slot now. Its first slot is reserved; a further one must leave the reserved slots of the
// others free. While all slots are in use when a client joins, the check of taken enforces the limit.
func (c *poolCore) may(m *client) bool {
	return c.taken < c.limit && (m.taken == 0 || c.shared < c.limit-len(c.clients))
}

// give gives a slot to a client that may have it.
func (c *poolCore) give(m *client) {
	if m.taken > 0 {
		c.shared++
	}
	m.taken++
	c.taken++
}

// grant grants a free slot to the client whose turn it is, and returns that client. It returns nil if no waiting client can have a slot. If
// the client wants more, it goes to the end of the queue.
func (c *poolCore) grant() *client {
	if c.waiting == 0 {
		return nil
	}
	var next *client
	for _, m := range c.clients {
		if m.wants > 0 && (next == nil || m.taken < next.taken || m.taken == next.taken && m.asked < next.asked) {
			next = m
		}
	}
	if !c.may(next) {
		return nil
	}
	c.give(next)
	next.granted++
	more := next.wants - 1
	c.want(next, 0)
	c.want(next, more)
	return next
}

// release takes one slot away from a client.
func (c *poolCore) release(m *client) {
	m.taken--
	c.taken--
	if m.taken > 0 {
		c.shared--
	}
}

// retract clears the wants of a client, and takes back the slots that were granted but not used.
func (c *poolCore) retract(m *client) {
	c.want(m, 0)
	for ; m.granted > 0; m.granted-- {
		c.release(m)
	}
}

// leave removes a client that has at most granted slots.
func (c *poolCore) leave(m *client) {
	c.retract(m)
	c.clients = slices.DeleteFunc(c.clients, func(other *client) bool { return other == m })
}
