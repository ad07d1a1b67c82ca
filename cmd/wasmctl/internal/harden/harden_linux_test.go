// SPDX-License-Identifier: Apache-2.0

package harden

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// asHardened makes the test binary a process that hardens itself, and then tries forbidden things
// on many threads.
const asHardened = "HARDEN_TEST_POLICY"

// found is the report of a hardened process.
type found struct {
	State
	Tried map[string]string // what was tried, and the error; "" where it worked
}

// asChild makes it be a process that a hardened one has started.
const asChild = "HARDEN_TEST_CHILD"

func TestMain(m *testing.M) {
	var p Policy
	if os.Getenv(asChild) != "" {
		os.Exit(0)
	}
	if text, ok := os.LookupEnv(asHardened); ok {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		beHardened(&p)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func beHardened(p *Policy) {
	threads := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 { // they are there before
		wg.Go(func() {
			runtime.LockOSThread()
			<-threads
		})
	}
	s, err := Apply(Auto, p)
	f := found{State: *s, Tried: map[string]string{"apply": text(err)}}
	close(threads)
	wg.Wait()
	for name, try := range attempts(p, s) {
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				runtime.LockOSThread() // a thread each
				errs <- try()
			}()
		}
		f.Tried[name] = text(<-errs)
		for range cap(errs) - 1 {
			if got := text(<-errs); got != f.Tried[name] {
				f.Tried[name] = "differs: " + got + " and " + f.Tried[name]
			}
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(f)
}

// memoryFile makes a file without a name.
func memoryFile(flags int) func() error {
	return func() error {
		fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC|flags)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
}

func attempts(p *Policy, s *State) map[string]func() error {
	call := func(n uintptr) func() error {
		return func() error {
			if _, _, errno := unix.Syscall6(n, 0, 0, 0, 0, 0, 0); errno == unix.EPERM {
				return errno
			}
			return nil
		}
	}
	read := func(path string) func() error {
		return func() error { _, err := os.ReadFile(path); return err }
	}
	dir := os.Getenv("HARDEN_TEST_DIR")
	tries := map[string]func() error{
		"ptrace": call(unix.SYS_PTRACE), "bpf": call(unix.SYS_BPF), "unshare": call(unix.SYS_UNSHARE), "mount": call(unix.SYS_MOUNT), "io_uring": call(unix.SYS_IO_URING_SETUP),
		"read /etc": read("/etc/passwd"), "read allowed": read(filepath.Join(dir, "r", "f")), "read other": read(filepath.Join(dir, "x", "f")),
		"write allowed": func() error {
			f, err := os.CreateTemp(filepath.Join(dir, "w"), "")
			if err != nil {
				return err
			}
			return errors.Join(f.Close(), os.Rename(f.Name(), f.Name()+"2"), os.Remove(f.Name()+"2"))
		},
		"write other":        func() error { return os.WriteFile(filepath.Join(dir, "x", "f"), nil, 0o600) },
		"make other":         func() error { return os.Mkdir(filepath.Join(dir, "x", rand.Text()), 0o700) },
		"memory file":        memoryFile(0),
		"sealed memory file": memoryFile(unix.MFD_NOEXEC_SEAL),
		"exec self": func() error {
			cmd := exec.Command("/proc/self/exe") //nolint:noctx // a test
			cmd.Env = []string{asChild + "=1"}
			return cmd.Run()
		},
		"write read-only": func() error { f, err := os.CreateTemp(filepath.Join(dir, "r"), ""); _ = f.Close(); return err },
		"connect": func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
			if err == nil {
				err = l.Close()
			}
			return err
		},
		"exec": func() error { return exec.Command("/bin/true").Run() }, //nolint:noctx // a test
		"privileges": func() error {
			on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && on == 1 {
				err = errors.New("none new")
			}
			return err
		},
		"dumpable": func() error {
			on, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
			if err == nil && on == 0 {
				err = errors.New("not")
			}
			return err
		},
	}
	if p.Alone && slices.Contains(s.InForce, "seccomp") { // in another process, some of them would succeed
		maps.Copy(tries, attemptsAlone())
	}
	return tries
}

// attemptsAlone are only for a process that is alone, and whose filter is in force.
func attemptsAlone() map[string]func() error {
	parent := os.Getppid()
	call := func(number uintptr, args ...int) func() error {
		return func() error {
			a := append(args, 0, 0, 0)
			result, _, errno := unix.RawSyscall6(number, uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), 0, 0, 0)
			if number == unix.SYS_CLONE && errno == 0 && result == 0 {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // a copy of this process
			}
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
	return map[string]func() error{
		"other calls":                     otherCalls,
		"signal the parent":               call(unix.SYS_KILL, parent),
		"signal a thread of the parent":   call(unix.SYS_TGKILL, parent, parent),
		"signal itself":                   call(unix.SYS_KILL, os.Getpid()),
		"own a descriptor for the parent": call(unix.SYS_FCNTL, 1, unix.F_SETOWN, parent),
		"limit the parent":                call(unix.SYS_PRLIMIT64, parent, unix.RLIMIT_NOFILE),
		"fork":                            call(unix.SYS_CLONE, int(unix.SIGCHLD)),
	}
}

// otherCalls makes each system call that is not in the list, and returns EPERM if all were refused.
func otherCalls() error {
	rules := aloneRules(true) // hardened adds a folder to write
	if _, _, errno := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.EPERM {
		return fmt.Errorf("there is no filter: %w", errno) // the calls below would have effects
	}
	for number := range uint32(600) {
		if runtime.GOARCH == "amd64" && (number == 335 || number == 336) {
			continue // uretprobe and uprobe pass each filter, and are of no use outside of a probe
		}
		if number == unix.SYS_CLONE3 || slices.ContainsFunc(rules, func(r rule) bool { return r.number == number }) {
			continue
		}
		if _, _, errno := unix.RawSyscall6(uintptr(number), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0)); errno != unix.EPERM {
			return fmt.Errorf("call %d: %w", number, errno)
		}
	}
	return unix.EPERM
}

func text(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, os.ErrPermission):
		return "denied"
	}
	return err.Error()
}

// hardened runs a process with a policy.
func hardened(t *testing.T, p *Policy) (f found) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"r", "w", "x"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "f"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p.Read, p.Write = append(p.Read, filepath.Join(dir, "r"), filepath.Join(dir, "not there")), append(p.Write, filepath.Join(dir, "w"))
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asHardened+"="+string(b), "HARDEN_TEST_DIR="+dir)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return f
}

func wantTried(t *testing.T, f found, want map[string]string) {
	t.Helper()
	for name, result := range want {
		if got := f.Tried[name]; got != result {
			t.Errorf("%s: %q, want %q", name, got, result)
		}
	}
}

// Every thread has lost the unnecessary rights, including threads that existed before.
func TestApply_RestrictsEachThread(t *testing.T) {
	f := hardened(t, &Policy{Execute: []string{"/bin/true"}, AnyFile: true})
	wantTried(t, f, map[string]string{
		"apply": "", "memory file": "", "exec self": "", "ptrace": "denied", "bpf": "denied", "unshare": "denied", "mount": "denied", "io_uring": "denied",
		"privileges": "none new", "dumpable": "not", "connect": "", "exec": "", "read other": "",
	})
	if got := f.String(); got != "not dumpable, no_new_privs, seccomp" || len(f.Missing) > 0 {
		t.Errorf("in force: %q; missing: %q", got, f.Missing)
	}
}

// A process that is alone has neither network nor children.
func TestApply_AloneIsWithoutNetworkAndPrograms(t *testing.T) {
	wantTried(t, hardened(t, &Policy{Alone: true, AnyFile: true}), map[string]string{"connect": "denied", "exec": "denied", "ptrace": "denied"})
}

// Files are those of the policy, for each thread.
func TestApply_RestrictsFiles(t *testing.T) {
	f := hardened(t, &Policy{})
	if missing := strings.Join(f.Missing, "; "); strings.Contains(missing, "landlock") {
		t.Skip("SKIPPED: run with CGO_ENABLED=0 on a kernel with Landlock: " + missing)
	}
	wantTried(t, f, map[string]string{
		"read allowed": "", "read other": "denied", "read /etc": "denied", "write allowed": "", "write read-only": "denied", "exec": "denied",
	})
	f = hardened(t, &Policy{Read: []string{"/etc"}, Execute: []string{"/"}, Write: []string{os.DevNull}})
	wantTried(t, f, map[string]string{"read /etc": "", "exec": "", "read other": "", "write read-only": "denied"})
}

// A process that reads everything writes and starts only what its lists have, and
// itself.
func TestApply_WritesAndStartsWhatTheListsHave(t *testing.T) {
	f := hardened(t, &Policy{Read: []string{"/"}, Write: []string{os.DevNull}, Self: true})
	if missing := strings.Join(f.Missing, "; "); strings.Contains(missing, "landlock") {
		t.Skip("SKIPPED: run with CGO_ENABLED=0 on a kernel with Landlock: " + missing)
	}
	wantTried(t, f, map[string]string{
		"read other": "", "read /etc": "", "write allowed": "", "exec self": "", "connect": "",
		"write other": "denied", "make other": "denied", "write read-only": "denied", "exec": "denied", "memory file": "denied", "sealed memory file": "",
	})
	if got := f.String(); !strings.HasPrefix(got, "not dumpable, no_new_privs, seccomp, landlock v") || len(f.Missing) > 0 {
		t.Errorf("in force: %q; missing: %q", got, f.Missing)
	}
}

func TestState_SaysWhatIsMissing(t *testing.T) {
	for want, s := range map[string]State{
		"none":                      {},
		"seccomp":                   {InForce: []string{"seccomp"}},
		"none; without a: x, b: y":  {Missing: []string{"a: x", "b: y"}},
		"seccomp; without b: cause": {InForce: []string{"seccomp"}, Missing: []string{"b: cause"}},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestApply_RequiredSaysWhatIsMissing(t *testing.T) {
	if s, err := Apply(Off, &Policy{}); err != nil || s.String() != "none" {
		t.Errorf("off: %v, %v", s, err)
	}
}

// verdict runs a program on a call.
func verdict(t *testing.T, program []unix.SockFilter, arch, number uint32, args ...uint32) uint32 {
	t.Helper()
	data := map[uint32]uint32{numberAt: number, archAt: arch}
	for i, v := range args {
		data[argsAt+8*uint32(i)] = v
	}
	var loaded uint32
	for at := 0; ; at++ {
		switch i := program[at]; i.Code {
		case bpfLoad:
			loaded = data[i.K]
		case bpfEqual:
			at += jump(i, loaded == i.K)
		case bpfAtLeast:
			at += jump(i, loaded >= i.K)
		case bpfHasBit:
			at += jump(i, loaded&i.K != 0)
		case bpfReturn:
			return i.K
		default:
			t.Fatalf("instruction %d: %+v", at, i)
		}
	}
}

func jump(i unix.SockFilter, yes bool) int {
	if yes {
		return int(i.Jt)
	}
	return int(i.Jf)
}

// The program of a list of refused calls answers as the list: for each number, on this
// architecture and on others.
func TestFilter_AgreesWithTheList(t *testing.T) {
	program := allBut(true)
	for number := range uint32(1000) {
		want := permit.K
		if slices.Contains(never, number) {
			want = refuse.K
		}
		for _, flags := range []uint32{unix.MFD_CLOEXEC, unix.MFD_CLOEXEC | unix.MFD_NOEXEC_SEAL} {
			want := want
			if number == unix.SYS_MEMFD_CREATE && flags&unix.MFD_NOEXEC_SEAL == 0 {
				want = refuse.K
			}
			if got := verdict(t, program, arch, number, 0, flags); got != want {
				t.Errorf("call %d with flags %#x: %#x, want %#x", number, flags, got, want)
			}
		}
		if got := verdict(t, program, arch+1, number); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("call %d of another architecture: %#x", number, got)
		}
		if got := verdict(t, program, arch, number|maxNumber); got == permit.K {
			t.Errorf("call %d of x32 is allowed", number)
		}
	}
}

// The program of a list of permitted calls answers as the list, for each number and for
// arguments at random.
func TestFilter_AgreesWithTheRules(t *testing.T) {
	for _, files := range []bool{false, true} {
		rules := aloneRules(files)
		program := only(rules)
		for number := range uint32(1000) {
			at := slices.IndexFunc(rules, func(r rule) bool { return r.number == number })
			for range 20 {
				args := make([]uint32, 6)
				for i := range args {
					args[i] = mathrand.Uint32()
				}
				want := refuse.K
				if number == unix.SYS_CLONE3 {
					want = unknown.K
				}
				if at >= 0 {
					r := rules[at]
					if len(r.values) > 0 && mathrand.IntN(2) == 0 {
						args[r.arg] = r.values[mathrand.IntN(len(r.values))]
					}
					if v := args[r.arg]; r.bit != 0 && v&r.bit != 0 || r.bit == 0 && (len(r.values) == 0 || slices.Contains(r.values, v)) {
						want = permit.K
					}
				}
				if got := verdict(t, program, arch, number, args...); got != want {
					t.Errorf("call %d with %x: %#x, want %#x", number, args, got, want)
				}
			}
			if got := verdict(t, program, arch+1, number); got != unix.SECCOMP_RET_KILL_PROCESS {
				t.Errorf("call %d of another architecture: %#x", number, got)
			}
			if got := verdict(t, program, arch, number|maxNumber); got == permit.K {
				t.Errorf("call %d of x32 is allowed", number)
			}
		}
	}
}

// A process that is alone makes no other call than those of its list: each other number is
// refused, on each thread. It does nothing to its parent, starts no process, and limits nothing.
func TestApply_AloneMakesTheCallsOfItsList(t *testing.T) {
	wantTried(t, hardened(t, &Policy{Alone: true, AnyFile: true}), map[string]string{
		"other calls": "denied", "signal the parent": "denied", "signal a thread of the parent": "denied", "own a descriptor for the parent": "denied",
		"limit the parent": "denied", "fork": "denied", "signal itself": "",
	})
}
