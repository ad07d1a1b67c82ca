;; Does what the last byte of its request says, which is the last byte of the
;; object. It counts its calls in a global, which shows whether an instance is
;; a fresh one.
;;
;;   0 await           1 unreachable       2 spin forever      3 recurse forever
;;   4 grow memory until refused, then unreachable
;;   5 result outside memory               6 result is not msgpack
;;   7 result too deep                     8 an error          9 requeue in 5 s
;;  10 result of 5 MiB                    11 requeue in as many ms as calls
;;  12 a result with unknown keys         13 negative after_ms
;;  14 division by zero                   15 grow memory until refused, then await
(module
  (memory (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (data (i32.const 16) "\81\a5error\83\a5class\a9permanent\a7message\a7no luck\a6reason\a6NoLuck")
  (data (i32.const 128) "\82\a6action\a7requeue\a8after_ms\cd\13\88")
  (data (i32.const 192) "\82\a6action\a7requeue\a8after_ms\00")
  (data (i32.const 256) "\83\a6action\a5await\a4what\01\a4more\c0")
  (data (i32.const 320) "\82\a6action\a7requeue\a8after_ms\ff")
  (data (i32.const 384) "\c1")
  (data (i32.const 400) "\81\a1x")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param $size i32) (result i32)
    (select (i32.const 1024) (i32.const 0) (i32.lt_u (local.get $size) (i32.const 60000))))

  (func $result (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32))
            (i64.extend_i32_u (local.get $len))))
  (func $recurse (param $n i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get $n) (i32.const 1))) (local.get $n)))
  (func $grow
    (loop $again
      (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))))
  (func $counted (result i64)
    (i32.store8 (i32.const 217) (global.get $calls))
    (call $result (i32.const 192) (i32.const 26)))

  (func $do (param $mode i32) (result i64)
    (if (i32.eq (local.get $mode) (i32.const 1)) (then (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 2)) (then (loop $forever (br $forever))))
    (if (i32.eq (local.get $mode) (i32.const 3)) (then (drop (call $recurse (i32.const 0)))))
    (if (i32.eq (local.get $mode) (i32.const 4)) (then (call $grow) (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 5)) (then (return (call $result (i32.const 65530) (i32.const 16)))))
    (if (i32.eq (local.get $mode) (i32.const 6)) (then (return (call $result (i32.const 384) (i32.const 1)))))
    (if (i32.eq (local.get $mode) (i32.const 7)) (then
      (memory.fill (i32.const 403) (i32.const 0x91) (i32.const 200)) ;; arrays of one element
      (i32.store8 (i32.const 603) (i32.const 0xc0))
      (return (call $result (i32.const 400) (i32.const 204)))))
    (if (i32.eq (local.get $mode) (i32.const 8)) (then (return (call $result (i32.const 16) (i32.const 54)))))
    (if (i32.eq (local.get $mode) (i32.const 9)) (then (return (call $result (i32.const 128) (i32.const 28)))))
    (if (i32.eq (local.get $mode) (i32.const 10)) (then
      (drop (memory.grow (i32.const 96)))
      (return (call $result (i32.const 0) (i32.const 5242880)))))
    (if (i32.eq (local.get $mode) (i32.const 11)) (then (return (call $counted))))
    (if (i32.eq (local.get $mode) (i32.const 12)) (then (return (call $result (i32.const 256) (i32.const 26)))))
    (if (i32.eq (local.get $mode) (i32.const 13)) (then (return (call $result (i32.const 320) (i32.const 26)))))
    (if (i32.eq (local.get $mode) (i32.const 14)) (then (drop (i32.div_u (i32.const 1) (i32.const 0)))))
    (if (i32.eq (local.get $mode) (i32.const 15)) (then (call $grow)))
    (i64.const 0))

  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (call $do (i32.load8_u (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 1)))))
  ;; error_policy asks for a requeue in as many ms as this instance had calls;
  ;; a failure whose object is 14 makes it trap too.
  (func (export "error_policy") (param $ptr i32) (param $len i32) (result i64)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.eq (i32.load8_u (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 1))) (i32.const 14))
      (then (unreachable)))
    (call $counted)))
