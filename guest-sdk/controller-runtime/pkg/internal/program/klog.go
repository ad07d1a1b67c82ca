// SPDX-License-Identifier: Apache-2.0

package program

import (
	"reflect"

	"k8s.io/klog/v2"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// logKlog sends the output of klog to the host, with its level, unless main has
// given klog a contextual logger. This includes loggers that main has made with
// klog.Background.
func logKlog() {
	if reflect.TypeOf(klog.Background().GetSink()) == reflect.TypeOf(klog.NewKlogr().GetSink()) {
		klog.SetLogger(hostlog.New(hostlog.Options{}))
	}
}
