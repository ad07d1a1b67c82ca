package main

import (
	"context"

	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// maxGrant is how large a grant's file may be, in bytes.
const maxGrant = 4 << 20

// watchGrant has the controller started anew when its grant's file gives it other
// rights, until ctx ends: rights bound its watches and its cache too. A file that
// is wrong changes nothing.
func (s *session) watchGrant(ctx context.Context) {
	file := filewatch.File{
		Path: s.opts.rights.grantFile, Content: s.grantText, MaxSize: maxGrant,
		OnChange: func(_ context.Context, content []byte) { s.regrant(content) },
		OnError:  s.keepGrant,
	}
	_ = file.Run(ctx) // its error has been told to OnError
}

func (s *session) regrant(content []byte) {
	f, err := grant.Parse(s.opts.rights.grantFile, content)
	if err == nil {
		err = s.opts.rights.names(f, s.name)
	}
	if err != nil {
		s.keepGrant(err)
		return
	}
	before, _ := s.grantFile.Rules(s.name)
	if now, _ := f.Rules(s.name); ruleLines(before) == ruleLines(now) {
		return
	}
	s.log.Info("its grant has changed: the controller is stopped, and started anew under it", "file", s.opts.rights.grantFile, "controller", s.name)
	s.restart(errAnew)
}

func (s *session) keepGrant(err error) {
	s.log.Warn("the grant cannot be used; the module keeps the rights that it has", "error", err.Error(), "controller", s.name)
}
