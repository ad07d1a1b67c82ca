package applier

// EndedFunc is an Observer of the ends of runs alone.
type EndedFunc func(*Outcome)

func (EndedFunc) Started(*Started)     {}
func (EndedFunc) Returned(string)      {}
func (f EndedFunc) Ended(out *Outcome) { f(out) }
