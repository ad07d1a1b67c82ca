// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdServer is an etcd with one member, which listens on a unix socket.
type etcdServer struct {
	url  string // for --etcd-servers
	etcd *embed.Etcd
}

// startEtcd starts etcd on DataDir/etcd and returns when it serves.
func startEtcd(ctx context.Context, cfg Config, sockDir string) (*etcdServer, error) {
	sock := filepath.Join(sockDir, "etcd.sock")
	e, err := embed.StartEtcd(etcdConfig(cfg, sock, sockDir))
	if err != nil {
		return nil, fmt.Errorf("etcd: start: %w", err)
	}
	s := &etcdServer{url: "unix://" + sock, etcd: e}
	limit := time.NewTimer(etcdStartLimit)
	defer limit.Stop()
	select {
	case <-e.Server.ReadyNotify():
		return s, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-limit.C:
		err = fmt.Errorf("not ready in %s", etcdStartLimit)
	}
	return nil, errors.Join(fmt.Errorf("etcd: start: %w", err), s.stop())
}

func etcdConfig(cfg Config, sock, sockDir string) *embed.Config {
	ec := embed.NewConfig()
	ec.Name = "devcluster"
	ec.Dir = filepath.Join(cfg.DataDir, "etcd")
	ec.ListenClientUrls = []url.URL{{Scheme: "unix", Path: sock}}
	// etcd listens for peers only on the host of the URL: with a path, it would use an abstract socket, to which every user of the machine
	// may connect.
	ec.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: filepath.Join(sockDir, "peer.sock")}}
	// These are unused: there is only one member, and the API server's client does not request endpoints.
	ec.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.111:0"}}
	ec.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.111:0"}}
	ec.InitialCluster = ec.InitialClusterFromName(ec.Name)
	ec.LogLevel = "panic" // "error" prints alarming but harmless lines at start and stop
	ec.LogOutputs = []string{"stderr"}
	ec.UnsafeNoFsync = cfg.UnsafeNoFsync
	ec.QuotaBackendBytes = 8 << 30
	ec.AutoCompactionMode = "periodic"
	ec.AutoCompactionRetention = "0"   // the API server compacts every 5 minutes
	ec.TickMs, ec.ElectionMs = 50, 500 // the election of the only member is most of the start time
	return ec
}

// failed returns the channel for the error of an etcd that ended by itself.
func (s *etcdServer) failed() <-chan error { return s.etcd.Err() }

// stop stops etcd and returns when it has closed its files.
func (s *etcdServer) stop() error {
	s.etcd.Close()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	select {
	case <-s.etcd.Server.StopNotify():
		return nil
	case <-limit.C:
		return errors.New("etcd: did not stop in 10s")
	}
}
