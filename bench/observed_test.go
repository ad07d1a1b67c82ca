// SPDX-License-Identifier: Apache-2.0

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

// reconcile is an observed reconcile.
type reconcile struct {
	object string // namespace/name
	begun  time.Time
}

// observed is a running contender, observed through its log.
type observed struct {
	name    string
	metrics string // where it serves metrics
	cmd     *exec.Cmd
	started time.Time
	ended   chan struct{} // closed at the end of the log
	enough  chan struct{} // closed when reconciles need no longer be counted

	mu     sync.Mutex
	seen   sight           // guarded by mu
	notify func(reconcile) // guarded by mu; called with each logged reconcile
	tail   []string        // guarded by mu; the last other lines
}

// sight is the information from the log and the metrics so far.
type sight struct {
	synced     time.Time // when the cache had all objects
	reconciled int       // number of reconciles
	last       time.Time // time of the last reconcile
	heap       float64   // MiB after the last garbage collection of a Go program
	heapPeak   float64   // the highest of these values
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

// freeAddress returns an unused address.
func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was never used
	return l.Addr().String()
}

// count reads the number of reconciles from the metrics until the log has ended. It waits for the minimum pause, or up
// to the maximum if the response is slow, because it takes the contender's time.
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

// scraper reads uncompressed metrics: compressing them a hundred times per second would cost more than everything else,
// and is not realistic.
var scraper = http.Client{Transport: &http.Transport{DisableCompression: true}}

// reconcilesAt sums up the reconciles in the metrics.
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

// read reads the log to its end. The Go runtime also writes to it, in pieces, so a line may follow the beginning of
// another one.
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

// parseReconcile parses the log line of a reconcile.
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

// parseHeap parses the heap size after a garbage collection, in MiB, from the Go runtime's line: "..., 27->29->14 MB,
// ...".
func parseHeap(line string) (mib float64, ok bool) {
	head, _, ok := strings.Cut(line, " MB, ")
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscan(head[strings.LastIndexByte(head, '>')+1:], &mib)
	return mib, err == nil
}

// get returns the information so far.
func (p *observed) get() sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// await waits until done accepts the information, and returns it.
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

// awaitReconciles waits until there were n reconciles in total.
func (p *observed) awaitReconciles(b *testing.B, n int) sight {
	b.Helper()
	return p.await(b, fmt.Sprint(n, " reconciles"), func(s sight) bool { return s.reconciled >= n })
}

// stop stops the contender and returns its peak resident memory, in MiB.
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

// cpu returns the CPU time of the contender.
func (p *observed) cpu(b *testing.B) time.Duration {
	b.Helper()
	return cpuTime(b, p.cmd.Process.Pid)
}

// cpuTime returns the CPU time of a process, in steps of 10 ms.
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
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every platform that Go supports
	return time.Duration(user+system) * tick
}
