// SPDX-License-Identifier: Apache-2.0

// Command cronjob is the operator: a manager with the controller of CronJobs.
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

	batchv1 "example.dev/cronjob/api/v1"
	"example.dev/cronjob/internal/controller"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(batchv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var metricsAddr, probeAddr string
	var enableLeaderElection, secureMetrics, enableHTTP2 bool
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "Serve metrics at this address; 0 serves none.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "Answer probes at this address.")
	flag.BoolVar(&enableLeaderElection, "leader-elect", false, "Let one of several managers be active.")
	flag.BoolVar(&secureMetrics, "metrics-secure", true, "Serve metrics by HTTPS.")
	flag.BoolVar(&enableHTTP2, "enable-http2", false, "Use HTTP/2 for metrics.")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))

	metrics := metricsserver.Options{BindAddress: metricsAddr, SecureServing: secureMetrics}
	if secureMetrics {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if !enableHTTP2 {
		metrics.TLSOpts = append(metrics.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metrics,
		HealthProbeBindAddress: probeAddr,
		LeaderElection:         enableLeaderElection,
		LeaderElectionID:       "5c1f0e8a.example.dev",
	})
	exitOn(err, "unable to create the manager")

	err = (&controller.CronJobReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	exitOn(err, "unable to create the controller")
	// +kubebuilder:scaffold:builder

	exitOn(mgr.AddHealthzCheck("healthz", healthz.Ping), "unable to set up the health check")
	exitOn(mgr.AddReadyzCheck("readyz", healthz.Ping), "unable to set up the ready check")
	setupLog.Info("starting manager")
	exitOn(mgr.Start(ctrl.SetupSignalHandler()), "the manager has ended")
}

func exitOn(err error, what string) {
	if err != nil {
		setupLog.Error(err, what)
		os.Exit(1)
	}
}
