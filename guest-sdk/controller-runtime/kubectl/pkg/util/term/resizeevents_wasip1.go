package term

// monitorResizeEvents sends nothing: a module has no terminal. A size has the type of
// client-go, of which this file does without the import.
func monitorResizeEvents[size any](uintptr, chan<- size, chan struct{}) {} //nolint:unused // by the library
