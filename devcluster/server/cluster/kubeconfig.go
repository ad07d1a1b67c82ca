// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig for the client rc to file, replacing an existing one. A reader never sees a partial file.
func writeKubeconfig(file string, rc *restclient.Config) error {
	dir, base := filepath.Split(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("kubeconfig[%s]: make its directory: %w", file, err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["devcluster"] = &clientcmdapi.Cluster{Server: rc.Host, CertificateAuthorityData: rc.CAData}
	c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: rc.CertData, ClientKeyData: rc.KeyData}
	c.Contexts["devcluster"] = &clientcmdapi.Context{Cluster: "devcluster", AuthInfo: "admin", Namespace: "default"}
	c.CurrentContext = "devcluster"
	text, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("kubeconfig[%s]: encode: %w", file, err)
	}
	// CreateTemp creates the file with the right mode (0600).
	tmp, err := os.CreateTemp(dir, base+".*")
	if err != nil {
		return fmt.Errorf("kubeconfig[%s]: %w", file, err)
	}
	defer os.Remove(tmp.Name()) // it is gone already if all went well
	_, err = tmp.Write(text)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("kubeconfig[%s]: write: %w", file, err)
	}
	return nil
}
