// SPDX-License-Identifier: Apache-2.0

// Package rotator replaces cert-controller's package of that name, which makes
// the certificates of webhooks. A module does not serve webhooks, so it needs
// no certificates.
package rotator

import (
	"crypto/x509"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WebhookType is the type of object that receives the certificate of the
// authority.
type WebhookType int

// The types.
const (
	Validating WebhookType = iota
	Mutating
	CRDConversion
	APIService
	ExternalDataProvider
)

// WebhookInfo names an object that receives the certificate of the authority.
type WebhookInfo struct {
	Name string
	Type WebhookType
}

// CertRotator configures the creation and renewal of certificates. Only IsReady
// has an effect.
type CertRotator struct {
	SecretKey      types.NamespacedName
	CertDir        string
	CAName         string
	CAOrganization string
	DNSName        string
	ExtraDNSNames  []string
	// IsReady is closed immediately.
	IsReady                chan struct{}
	Webhooks               []WebhookInfo
	FieldOwner             string
	RestartOnSecretRefresh bool
	ExtKeyUsages           *[]x509.ExtKeyUsage
	RequireLeaderElection  bool
	CaCertDuration         time.Duration
	ServerCertDuration     time.Duration
	RotationCheckFrequency time.Duration
	LookaheadInterval      time.Duration
	CertName               string
	KeyName                string
	EnableReadinessCheck   bool
	ControllerName         string
}

// AddRotator marks the certificates as ready, and has no other effect.
func AddRotator(mgr manager.Manager, cr *CertRotator) error {
	mgr.GetLogger().Info("certificates for webhooks have no effect in a module", "secret", cr.SecretKey.String())
	if cr.IsReady != nil {
		close(cr.IsReady)
	}
	return nil
}
