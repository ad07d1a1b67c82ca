// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// distant returns a kubeconfig for the cluster through a connection with a delay in each direction, like a network. It
// contains a token, like a pod's: the API server verifies a client certificate with each request, which costs CPU.
func distant(b *testing.B, cluster *devcluster.Cluster, delay time.Duration) string {
	b.Helper()
	return counted(b, cluster, delay, new(atomic.Int64))
}

// counted is like distant, and counts the bytes that the cluster sends.
func counted(b *testing.B, cluster *devcluster.Cluster, delay time.Duration, sent *atomic.Int64) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	b.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	backend := strings.TrimPrefix(cluster.URL(), "https://")
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			server, err := net.Dial("tcp", backend)
			if err != nil {
				_ = client.Close()
				continue
			}
			wg.Go(func() { carry(client, server, delay, new(atomic.Int64)) })
			wg.Go(func() { carry(server, client, delay, sent) })
		}
	})
	may := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	rc := devclustertest.LimitedClusterWide(b, cluster, may)
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + l.Addr().String(), CertificateAuthorityData: rc.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: rc.BearerToken}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	path := filepath.Join(b.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		b.Fatal(err)
	}
	return path
}

// packet is the data of one read, and when to forward it.
type packet struct {
	data []byte
	due  time.Time
}

// carry copies src to dst, delays each byte, counts the bytes, and closes both at the end.
func carry(src, dst net.Conn, delay time.Duration, bytes *atomic.Int64) {
	packets := make(chan packet, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		for p := range packets {
			<-time.After(time.Until(p.due))
			if _, err := dst.Write(p.data); err != nil {
				_ = src.Close() // ends the reader; the remainder is drained
			}
		}
		_ = dst.Close()
	})
	for {
		buf := make([]byte, 32<<10)
		n, err := src.Read(buf)
		if bytes.Add(int64(n)); n > 0 {
			packets <- packet{buf[:n], time.Now().Add(delay)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = dst.Close()
			}
			break
		}
	}
	close(packets)
	wg.Wait()
	_ = src.Close()
}
