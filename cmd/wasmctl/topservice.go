package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Top implements admin.Service.
func (p *process) Top(objects int) admin.Top {
	now := time.Now()
	top := admin.Top{Controllers: []admin.TopController{}, Objects: []admin.TopObject{}}
	for _, s := range p.members.sessions() {
		load, busiest := s.history.Busiest(now, objects)
		top.Controllers = append(top.Controllers, admin.TopController{
			Name: s.name, Load: admin.Load(load), Memory: s.module.Memory(), Workers: s.module.Concurrency(), Running: s.controller.Stats().Running,
		})
		for _, b := range busiest {
			top.Objects = append(top.Objects, admin.TopObject{Controller: s.name, Object: b.Key.String(), Load: admin.Load(b.Load)})
		}
	}
	slices.SortStableFunc(top.Controllers, func(a, b admin.TopController) int { return cmp.Compare(b.Busy, a.Busy) })
	slices.SortStableFunc(top.Objects, func(a, b admin.TopObject) int { return cmp.Compare(b.Busy, a.Busy) })
	top.Objects = top.Objects[:min(objects, len(top.Objects))]
	return top
}
