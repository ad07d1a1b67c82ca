;; Breaks the contract of exports in as many ways as fit: a missing marker and
;; buffer, reconcile and filter of the wrong type, and a map that is no function.
(module
  (memory (export "memory") 1)
  (global (export "map") i32 (i32.const 0))
  (func (export "reconcile") (param i32) (result i64) (i64.const 0))
  (func (export "filter") (param i32 i32)))
