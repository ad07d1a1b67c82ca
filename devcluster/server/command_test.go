// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
)

func TestCommand_GetsTheClusterAndGivesItsExitCode(t *testing.T) {
	tmp := shortTemp(t)
	p := newProcess(t, tmp, "--unsafe-no-fsync", "--", "sh", "-c",
		`[ "$KUBECONFIG" = "$DEVCLUSTER_KUBECONFIG" ] && grep -q 'server: https://127.0.0.1:' "$KUBECONFIG" && cat && exit 7`)
	p.cmd.Stdin = strings.NewReader("standard input is the command's\n")
	out, _ := p.cmd.Output() // the exit code is checked below
	if code := p.cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d, want the command's, 7; stderr:\n%s", code, p.stderr)
	}
	if got := string(out); got != "standard input is the command's\n" {
		t.Errorf("stdout %q, want the command's output alone", got)
	}
	if got := privateDirs(t, tmp); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	wantOwnLinesOnly(t, p.stderr.String())
}

func TestCommand_MissingOneIs127(t *testing.T) {
	p := newProcess(t, shortTemp(t), "--unsafe-no-fsync", "--", "no-such-command")
	err := p.cmd.Run()
	if code := p.cmd.ProcessState.ExitCode(); code != exitCommandNotFound {
		t.Errorf("exit code %d (%v), want %d", code, err, exitCommandNotFound)
	}
	wantOwnLinesOnly(t, p.stderr.String()) // stopped during the start, which logs the most
}

// shell starts a script that prints a line once its traps are set.
func shell(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatalf("script %q did not start: %v", script, err)
	}
	return cmd
}

func TestAttend_PassesSignalsOn(t *testing.T) {
	const deaf = `trap "" TERM; echo up; while :; do :; done`
	for _, tc := range []struct {
		name   string
		script string
		sigs   []os.Signal
		lost   bool
		want   int
	}{
		{"exit code", `echo up; exit 5`, nil, false, 5},
		{"SIGTERM is passed on", `trap "exit 9" TERM; echo up; while :; do :; done`, []os.Signal{syscall.SIGTERM}, false, 9},
		{"death by signal", `echo up; kill -KILL $$`, nil, false, 128 + 9},
		{"second signal kills", deaf, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, false, 128 + 9},
		{"lost control plane kills", deaf, nil, true, 128 + 9},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sigs, lost := make(chan os.Signal, 4), make(chan struct{})
			cmd := shell(t, tc.script)
			for _, s := range tc.sigs {
				sigs <- s
			}
			if tc.lost {
				close(lost)
			}
			if got := attend(cmd, sigs, lost); got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
		})
	}
}

// A terminal sends SIGINT to the command by itself. If it were forwarded as well, it would be the second one, which
// stops many programs at once.
func TestAttend_DoesNotPassSIGINTOn(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "exit 9" INT; read line; exit 5`)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sigs, code := make(chan os.Signal), make(chan int, 1)
	go func() { code <- attend(cmd, sigs, nil) }()
	sigs <- syscall.SIGINT // has been handled when this returns
	if _, err := stdin.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 5 {
		t.Errorf("exit code %d, want 5: the command got a SIGINT", got)
	}
}

func TestParse_RefusesWhatDoesNotGoTogether(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "--data-dir is required",
		"--data-dir d extra":                   `unexpected argument "extra"`,
		"version more":                         "unexpected argument",
		"--":                                   "no COMMAND after --",
		"x -- true":                            "unexpected argument",
		"--exit-on-stdin-close -- true":        "--exit-on-stdin-close cannot be used with a COMMAND",
		"--data-dir d --port 65536":            "--port 65536",
		"--data-dir d --port -1":               "--port -1",
		"--data-dir d --v -1":                  "--v -1",
		"--data-dir d --apiserver-flag name=v": "--name=value",
		"--data-dir d --nonsense":              "unknown flag",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("devcluster %s: %v, want an error with %q", args, err, want)
		}
	}
}

func TestParse_FlagsOfTheCommandAreItsOwn(t *testing.T) {
	o, err := parse(strings.Fields("--port 1 -- go test --port 2 ./..."))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(o.command, " "); got != "go test --port 2 ./..." || o.cluster.Port != 1 {
		t.Errorf("command %q and port %d", got, o.cluster.Port)
	}
}

func TestParse_HelpNamesEveryFlag(t *testing.T) {
	for _, args := range []string{"help", "--help", "-h"} {
		if _, err := parse([]string{args}); err != pflag.ErrHelp {
			t.Errorf("devcluster %s: %v, want help", args, err)
		}
	}
	help := helpText()
	newFlags(new(options)).VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(help, "--"+f.Name) {
			t.Errorf("--help says nothing of --%s", f.Name)
		}
	})
}
