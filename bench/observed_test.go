package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// reconcile is one that was seen.
type reconcile struct {
	object string // namespace/name
	begun  time.Time
}

// observed is a running contender, and what its log says of it.
type observed struct {
	name    string
	metrics string // where it serves them
	cmd     *exec.Cmd
	started time.Time
	ended   chan struct{} // closed when the log has ended
	enough  chan struct{} // closed when reconciles need no longer be counted

	mu     sync.Mutex
	seen   sight           // guarded by mu
	notify func(reconcile) // guarded by mu; is given what is logged
	tail   []string        // guarded by mu; the last lines that are no reconciles
}

// sight is what its log and its metrics have said until now.
type sight struct {
	synced     time.Time // when the cache had all objects
	reconciled int       // how many reconciles there were
	last       time.Time // when the last of them was
	heap       float64   // MiB that the last collection of a program in Go left
	heapPeak   float64   // the greatest of these
}

// observe starts a contender. It is stopped when the benchmark ends, unless stop
// was called.
func (c contender) observe(b *testing.B, j job) *observed {
	b.Helper()
	address := freeAddress(b)
	p := &observed{name: c.name, metrics: "http://" + address + "/metrics", cmd: c.command(j, address), ended: make(chan struct{}), enough: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	log, err := p.cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go p.read(log)
	pauses := [2]time.Duration{10 * time.Millisecond, 25 * time.Millisecond}
	if j.seldom {
		pauses = [2]time.Duration{250 * time.Millisecond, 250 * time.Millisecond}
	}
	go p.count(pauses)
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// freeAddress returns an address that nobody listens on.
func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was never used
	return l.Addr().String()
}

// count takes the number of reconciles from the metrics until the log has ended. It asks
// after the least pause, or up to the most where the answer takes long: it takes the
// contender's time.
func (p *observed) count(pauses [2]time.Duration) {
	for pause := pauses[0]; ; {
		select {
		case <-time.After(pause):
		case <-p.ended:
			return
		case <-p.enough:
			return
		}
		begin := time.Now()
		n := reconcilesAt(p.metrics)
		p.mu.Lock()
		if n > p.seen.reconciled {
			p.seen.reconciled, p.seen.last = n, time.Now()
		}
		p.mu.Unlock()
		pause = min(max(pauses[0], 10*time.Since(begin)), pauses[1])
	}
}

// scraper asks for metrics as they are: to compress them a hundred times a second would
// be more than all else that they take, and nobody asks that often.
var scraper = http.Client{Transport: &http.Transport{DisableCompression: true}}

// reconcilesAt sums up the reconciles that metrics have counted.
func reconcilesAt(url string) (sum int) {
	resp, err := scraper.Get(url) //nolint:noctx // it is ours, and answers at once
	if err != nil {
		return 0 // it has not started
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var n float64
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "controller_runtime_reconcile_total{") {
			if _, err := fmt.Sscan(value, &n); err == nil {
				sum += int(n)
			}
		}
	}
	return sum
}

// read reads the log to its end. The Go runtime writes to it too, in pieces, so
// that a line may stand behind the beginning of another.
func (p *observed) read(log io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(bufio.NewReaderSize(log, 1<<20))
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		p.see(lines.Bytes())
	}
}

func (p *observed) see(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case bytes.Contains(line, []byte(`"msg":"reconciled"`)):
		if p.notify != nil {
			p.notify(parseReconcile(line))
		}
		return
	case bytes.Contains(line, []byte("watches have synced")):
		p.seen.synced = time.Now()
	}
	if heap, ok := parseHeap(string(line)); ok {
		p.seen.heap, p.seen.heapPeak = heap, max(heap, p.seen.heapPeak)
		return
	}
	p.tail = append(p.tail[max(0, len(p.tail)-20):], string(line))
}

// parseReconcile reads the line of a reconcile.
func parseReconcile(line []byte) reconcile {
	var l struct {
		Time     time.Time
		Object   string
		Duration time.Duration
	}
	if err := json.Unmarshal(line[bytes.IndexByte(line, '{'):], &l); err != nil {
		panic(fmt.Sprintf("%s: %v", line, err))
	}
	return reconcile{l.Object, l.Time.Add(-l.Duration)}
}

// parseHeap reads what heap a collection left, in MiB, from the Go runtime's
// line about it: "..., 27->29->14 MB, ...".
func parseHeap(line string) (mib float64, ok bool) {
	head, _, ok := strings.Cut(line, " MB, ")
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscan(head[strings.LastIndexByte(head, '>')+1:], &mib)
	return mib, err == nil
}

// get returns what the log has said until now.
func (p *observed) get() sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// await waits until done says so of the log, and returns what it said then.
func (p *observed) await(b *testing.B, what string, done func(s sight) bool) sight {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(roundLimit)
	for {
		if s := p.get(); done(s) {
			return s
		}
		select {
		case <-tick.C:
			continue
		case <-p.ended:
		case <-limit:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		b.Fatalf("%s: %s: not seen: %+v\n%s", p.name, what, p.seen, strings.Join(p.tail, "\n"))
	}
}

// awaitReconciles waits until there were n reconciles in all.
func (p *observed) awaitReconciles(b *testing.B, n int) sight {
	b.Helper()
	return p.await(b, fmt.Sprint(n, " reconciles"), func(s sight) bool { return s.reconciled >= n })
}

// stop stops the contender and returns how much memory it had resident at its
// peak, in MiB.
func (p *observed) stop(b *testing.B) (peak float64) {
	b.Helper()
	signal(b, p.cmd, syscall.SIGTERM)
	<-p.ended
	if err := p.cmd.Wait(); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.Errorf("%s: %v\n%s", p.name, err, strings.Join(p.tail, "\n"))
	}
	return float64(p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}

// cpu returns the CPU time that the contender has taken.
func (p *observed) cpu(b *testing.B) time.Duration {
	b.Helper()
	return cpuTime(b, p.cmd.Process.Pid)
}

// cpuTime returns the CPU time that a process has taken, in steps of 10 ms.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third field on
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		b.Fatal(err)
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every platform that Go has
	return time.Duration(user+system) * tick
}
