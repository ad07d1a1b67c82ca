// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// process is a child process whose output is shown and recorded.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended and err is set
	err  error         // of the child; valid after done

	mu      sync.Mutex
	lines   []string      // its output; guarded by mu
	changed chan struct{} // closed and replaced at each line; guarded by mu
}

// start starts a program and shows its output.
func start(path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{}), changed: make(chan struct{})}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr = p.cmd.Stdout
	fmt.Printf("    $ %s %s\n", path, strings.Join(args, " "))
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		p.show(out)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

func (p *process) show(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		fmt.Println("    |", s.Text())
		p.mu.Lock()
		p.lines = append(p.lines, s.Text())
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

// waitForLine waits until the process has written a line with the text.
func (p *process) waitForLine(ctx context.Context, part string) error {
	for {
		p.mu.Lock()
		changed := p.changed
		for _, line := range p.lines {
			if strings.Contains(line, part) {
				p.mu.Unlock()
				return nil
			}
		}
		p.mu.Unlock()
		select {
		case <-changed:
		case <-p.done:
			return fmt.Errorf("%s ended: %w", p.cmd.Path, p.err)
		case <-ctx.Done():
			return fmt.Errorf("%s did not print %q: %w", p.cmd.Path, part, ctx.Err())
		}
	}
}

// wait waits for the end of the process, and returns its error.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill kills the process if it still runs, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
