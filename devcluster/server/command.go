// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/wasmctl/wasmctl/devcluster/server/cluster"
)

// plane is a control plane that runs next to a command.
type plane struct {
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned
	err  error         // the result of Run; set before done is closed
}

// runCommand runs the control plane while COMMAND runs, and returns COMMAND's exit code.
func runCommand(opts options) int {
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, stopSignals()...)
	defer signal.Stop(sigs)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p := &plane{stop: stop, done: make(chan struct{})}
	ready := make(chan cluster.Info, 1)
	go func() {
		defer close(p.done)
		p.err = cluster.Run(ctx, opts.cluster, func(info cluster.Info) { ready <- info })
	}()
	select {
	case info := <-ready:
		return p.runBeside(info, opts.command, sigs)
	case sig := <-sigs:
		signal.Stop(sigs) // a second one ends the process
		stop()
		<-p.done
		return signalCode(sig)
	case <-p.done:
		say("%v", p.err)
		return exitCommandNoCluster
	}
}

// runBeside runs the command on the ready control plane, and then stops the control plane.
func (p *plane) runBeside(info cluster.Info, command []string, sigs <-chan os.Signal) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+info.Kubeconfig, "DEVCLUSTER_KUBECONFIG="+info.Kubeconfig)
	var code int
	if err := cmd.Start(); err != nil {
		say("command[%s]: %v", command[0], err)
		code = exitCommandCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = exitCommandNotFound
		}
	} else {
		code = attend(cmd, sigs, p.done)
	}
	p.stop()
	<-p.done
	if p.err != nil {
		say("%v", p.err)
		return exitCommandNoCluster
	}
	return code
}

// attend waits for the started command and returns its exit code. Meanwhile it forwards signals: the second one as SIGKILL, and SIGINT not
// at all. When lost is closed, the control plane is gone and the command is killed.
func attend(cmd *exec.Cmd, sigs <-chan os.Signal, lost <-chan struct{}) int {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // ProcessState contains everything
	}()
	// Signal and Kill fail only if the command has ended.
	for signals := 0; ; {
		select {
		case <-ended:
			return stateCode(cmd.ProcessState)
		case sig := <-sigs:
			if signals++; signals > 1 {
				_ = cmd.Process.Kill()
			} else if sig != syscall.SIGINT {
				_ = cmd.Process.Signal(sig)
			}
		case <-lost:
			lost = nil
			say("the control plane has exited; killing the command")
			_ = cmd.Process.Kill()
		}
	}
}

// stateCode returns the exit code that a shell would report for the ended process.
func stateCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return signalCode(ws.Signal())
	}
	return state.ExitCode()
}

func signalCode(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return exitCommandSignalBase + int(s)
	}
	return exitCommandNoCluster
}
