;; Asks the host for work without end, of a kind that the last byte of its request
;; names, with a loop that does nothing else:
;;   1 random_get of 32 MiB      2 log of a msgpack map of 64 KiB
;;   3 poll_oneoff of 1,024      4 fd_read of 1,024 vectors
;;   5 fd_write of 1,024 vectors that overlap, 16 MiB of ends of lines together
;;   6 clock_time_get            7 args_get
;;   8 config_get with a request of 4 MiB
;;   9 path_open of 32 MiB       10 an operation that nobody knows
;;   11 fd_write of nothing
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "reconciler_v1" "log" (func $log (param i32 i32 i32)))
  (import "reconciler_v1" "config_get" (func $config_get (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "teleport" (func $teleport (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 600)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))

  ;; At 65536 a map of 16 bits with 16,383 keys of two characters and nil; at
  ;; 262144 1,024 vectors of 16 KiB, each at 1 MiB; at 524288 subscriptions to
  ;; clocks that ring at once.
  (func $prepare
    (local $i i32)
    (local $at i32)
    (i32.store8 (i32.const 65536) (i32.const 0xde))
    (i32.store8 (i32.const 65537) (i32.const 0x3f))
    (i32.store8 (i32.const 65538) (i32.const 0xff))
    (local.set $at (i32.const 65539))
    (loop $keys
      (i32.store (local.get $at) (i32.or (i32.const 0xc00000a2) (i32.shl (i32.or (i32.const 0x4040) (i32.or
        (i32.and (local.get $i) (i32.const 63)) (i32.shl (i32.and (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 63)) (i32.const 8))))
        (i32.const 8))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $keys (i32.lt_u (local.get $i) (i32.const 16383))))
    (local.set $i (i32.const 0))
    (loop $vectors
      (i32.store (i32.add (i32.const 262144) (i32.mul (local.get $i) (i32.const 8))) (i32.const 1048576))
      (i32.store (i32.add (i32.const 262148) (i32.mul (local.get $i) (i32.const 8))) (i32.const 16384))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $vectors (i32.lt_u (local.get $i) (i32.const 1024))))
    (memory.fill (i32.const 1048576) (i32.const 10) (i32.const 16384)))

  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $mode i32)
    (local.set $mode (i32.load8_u (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 1))))
    (call $prepare)
    (loop $again
      (if (i32.eq (local.get $mode) (i32.const 1)) (then (drop (call $random_get (i32.const 2097152) (i32.const 33554432)))))
      (if (i32.eq (local.get $mode) (i32.const 2)) (then (call $log (i32.const 4) (i32.const 65536) (i32.const 65535))))
      (if (i32.eq (local.get $mode) (i32.const 3)) (then
        (drop (call $poll_oneoff (i32.const 524288) (i32.const 589824) (i32.const 1024) (i32.const 640000)))))
      (if (i32.eq (local.get $mode) (i32.const 4)) (then
        (drop (call $fd_read (i32.const 0) (i32.const 262144) (i32.const 1024) (i32.const 640000)))))
      (if (i32.eq (local.get $mode) (i32.const 5)) (then
        (drop (call $fd_write (i32.const 1) (i32.const 262144) (i32.const 1024) (i32.const 640000)))))
      (if (i32.eq (local.get $mode) (i32.const 6)) (then (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 640000)))))
      (if (i32.eq (local.get $mode) (i32.const 8)) (then
        (drop (call $config_get (i32.const 65536) (i32.const 4194304) (i32.const 640000) (i32.const 64)))))
      (if (i32.eq (local.get $mode) (i32.const 9)) (then
        (drop (call $path_open (i32.const 3) (i32.const 0) (i32.const 2097152) (i32.const 33554432) (i32.const 0) (i64.const 0)
          (i64.const 0) (i32.const 0) (i32.const 640000)))))
      (if (i32.eq (local.get $mode) (i32.const 10)) (then
        (drop (call $teleport (i32.const 65536) (i32.const 65536) (i32.const 640000) (i32.const 64)))))
      (if (i32.eq (local.get $mode) (i32.const 11)) (then
        (drop (call $fd_write (i32.const 1) (i32.const 524288) (i32.const 1024) (i32.const 640000)))))
      (if (i32.eq (local.get $mode) (i32.const 7)) (then (drop (call $args_get (i32.const 640000) (i32.const 640064)))))
      (br $again))
    (unreachable)))
