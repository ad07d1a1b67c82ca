;; Copies all of its memory onto itself for ever: the longest that one
;; instruction takes.
(module
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (drop (memory.grow (i32.const 255)))
    (loop $forever
      (memory.copy (i32.const 1) (i32.const 0) (i32.const 16777215))
      (br $forever))
    (i64.const 0)))
