package leader

// Leader returns the identity of the leader as this replica sees it; empty
// where it has not seen one.
func (e *Elector) Leader() string { return e.elector.GetLeader() }
