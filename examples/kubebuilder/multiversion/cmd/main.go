// SPDX-License-Identifier: Apache-2.0

// Command multiversion is the operator: a manager with the controller of Backups,
// and the webhook that converts them between their versions.
package main

import (
	"crypto/tls"
	"flag"
	"os"

	// The login plugins of kubeconfig files.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	storagev1 "example.dev/multiversion/api/v1"
	storagev2 "example.dev/multiversion/api/v2"
	"example.dev/multiversion/internal/controller"
	webhookv1 "example.dev/multiversion/internal/webhook/v1"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(storagev1.AddToScheme(scheme))
	utilruntime.Must(storagev2.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var metricsAddr, probeAddr string
	var enableLeaderElection, secureMetrics, enableHTTP2 bool
	var hooks webhook.Options
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "Serve metrics at this address; 0 serves none.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "Answer probes at this address.")
	flag.BoolVar(&enableLeaderElection, "leader-elect", false, "Let one of several managers be active.")
	flag.BoolVar(&secureMetrics, "metrics-secure", true, "Serve metrics by HTTPS.")
	flag.BoolVar(&enableHTTP2, "enable-http2", false, "Use HTTP/2 for metrics and webhooks.")
	flag.StringVar(&hooks.CertDir, "webhook-cert-path", "", "The folder with tls.crt and tls.key of the webhooks.")
	flag.IntVar(&hooks.Port, "webhook-port", webhook.DefaultPort, "Serve webhooks at this port.")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))

	metrics := metricsserver.Options{BindAddress: metricsAddr, SecureServing: secureMetrics}
	if secureMetrics {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !enableHTTP2 {
		http1 := func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }
		metrics.TLSOpts, hooks.TLSOpts = append(metrics.TLSOpts, http1), append(hooks.TLSOpts, http1)
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metrics,
		WebhookServer:          webhook.NewServer(hooks),
		HealthProbeBindAddress: probeAddr,
		LeaderElection:         enableLeaderElection,
		LeaderElectionID:       "d0a5b7c2.example.dev",
	})
	exitOn(err, "unable to create the manager")
	setUp(mgr)
	setupLog.Info("starting manager")
	exitOn(mgr.Start(ctrl.SetupSignalHandler()), "the manager has ended")
}

// setUp declares the controllers, webhooks and probes.
func setUp(mgr ctrl.Manager) {
	err := (&controller.BackupReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	exitOn(err, "unable to create the controller")
	if os.Getenv("ENABLE_WEBHOOKS") != "false" {
		exitOn(webhookv1.SetupBackupWebhookWithManager(mgr), "unable to create the webhook")
	}
	// +kubebuilder:scaffold:builder
	exitOn(mgr.AddHealthzCheck("healthz", healthz.Ping), "unable to set up the health check")
	exitOn(mgr.AddReadyzCheck("readyz", healthz.Ping), "unable to set up the ready check")
}

func exitOn(err error, what string) {
	if err != nil {
		setupLog.Error(err, what)
		os.Exit(1)
	}
}
