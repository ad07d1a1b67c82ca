package program

import (
	"reflect"

	"k8s.io/klog/v2"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// logKlog gives what klog logs to the host, with its level, unless main has given it to
// a contextual logger. Loggers that main has made by klog.Background log so, too.
func logKlog() {
	if reflect.TypeOf(klog.Background().GetSink()) == reflect.TypeOf(klog.NewKlogr().GetSink()) {
		klog.SetLogger(hostlog.New(hostlog.Options{}))
	}
}
