package logrus

// isTerminal is asked whether colours may be used. A module has no terminal.
func isTerminal(int) bool { return false } //nolint:unused // logrus uses it
