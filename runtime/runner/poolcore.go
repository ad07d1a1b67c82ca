package runner

import "slices"

// poolCore decides who gets a slot. It is a plain data structure; Pool has the lock.
type poolCore struct {
	limit   int
	clients []*client
	taken   int    // slots that are taken or granted, over all clients
	shared  int    // of these, those beyond the first of each client
	waiting int    // clients that want slots
	asked   uint64 // number of the last wait
}

// client is one Runner's part in a Pool. All fields but wake are guarded by Pool.mu.
type client struct {
	wake    func()
	taken   int    // slots that it has, the granted ones included
	granted int    // slots that were granted and that it has not taken yet
	wants   int    // slots that it was refused and still wants
	asked   uint64 // order among those that want
}

// take gives a client a slot, or lets it wait for as many as it wants.
func (c *poolCore) take(m *client, wants int) bool {
	switch {
	case m.granted > 0:
		m.granted--
		return true
	case c.may(m) && (m.taken == 0 || c.waiting == 0): // what is free beyond the reserved slots belongs to those who wait
		c.give(m)
		return true
	}
	c.want(m, wants)
	return false
}

// want sets how many slots a client wants; one that wants none yet comes behind the others.
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

// may says whether a client may have one more slot now: its first one is reserved, the others are not to touch what is reserved for others.
// While a client that has just joined finds its slot in use, taken is what keeps the limit.
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

// grant gives a free slot to the client whose turn it is and returns it; nil if no client that can have a slot wants one. If it wants more,
// it comes behind the others for those.
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

// release takes a slot from a client.
func (c *poolCore) release(m *client) {
	m.taken--
	c.taken--
	if m.taken > 0 {
		c.shared--
	}
}

// retract forgets that a client wants slots, and takes back what was granted to it meanwhile.
func (c *poolCore) retract(m *client) {
	c.want(m, 0)
	for ; m.granted > 0; m.granted-- {
		c.release(m)
	}
}

// leave removes a client that has no slot but granted ones.
func (c *poolCore) leave(m *client) {
	c.retract(m)
	c.clients = slices.DeleteFunc(c.clients, func(other *client) bool { return other == m })
}
