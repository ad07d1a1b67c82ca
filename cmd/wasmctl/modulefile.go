package main

import "sync"

// moduleFile is where a session's module is: a file of controllers may name
// another one while it runs.
type moduleFile struct {
	mu    sync.Mutex
	name  string        // guarded by mu
	moved chan struct{} // closed when name changes; guarded by mu
}

// move names another file.
func (f *moduleFile) move(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved != nil {
		close(f.moved)
	}
	f.name, f.moved = name, make(chan struct{})
}

// path returns the file's name.
func (f *moduleFile) path() string {
	name, _ := f.watch()
	return name
}

// watch returns the file's name, and what is closed when it is another.
func (f *moduleFile) watch() (name string, moved <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.name, f.moved
}
