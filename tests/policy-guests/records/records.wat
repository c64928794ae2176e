;; The reference kernel over lists of records, written by hand so that nothing but the interface costs
;; more than columns do: memory is handed out from the bottom up and taken back whole after each call.
(module
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 1024))

  (func $take (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (if (i32.gt_u (global.get $top) (i32.shl (memory.size) (i32.const 16)))
      (then
        ;; A mebibyte more than is needed, so that this is rare.
        (if (i32.lt_s
              (memory.grow
                (i32.sub (i32.add (i32.shr_u (global.get $top) (i32.const 16)) (i32.const 16)) (memory.size)))
              (i32.const 0))
          (then (unreachable)))))
    (local.get $at))

  (func (export "cabi_realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32) (result i32)
    (call $take (local.get $size)))

  ;; What the numbers at an address are worth: two divisions and three additions of doubles.
  (func $rank (param $of i32) (result i64)
    (local $free i64)
    (local.set $free
      (i64.add
        (i64.sub (i64.load32_u offset=8 (local.get $of)) (i64.load32_u offset=32 (local.get $of)))
        (i64.sub (i64.load32_u offset=12 (local.get $of)) (i64.load32_u offset=36 (local.get $of)))))
    (local.set $free (select (local.get $free) (i64.const 1) (i64.gt_s (local.get $free) (i64.const 1))))
    (i64.trunc_sat_f64_s
      (f64.add
        (f64.add
          (f64.div (f64.convert_i64_s (i64.load (local.get $of))) (f64.convert_i64_s (local.get $free)))
          (f64.div
            (f64.convert_i64_s (i64.load32_u offset=24 (local.get $of)))
            (f64.convert_i64_s (i64.add (i64.load32_u offset=28 (local.get $of)) (i64.const 1)))))
        (f64.convert_i64_s (i64.add (i64.load32_u offset=16 (local.get $of)) (i64.load32_u offset=20 (local.get $of)))))))

  ;; The ranks of `rows` records, one every `size` bytes from `of`; answers the address of their list.
  (func $ranks (param $of i32) (param $rows i32) (param $size i32) (result i32)
    (local $list i32) (local $answer i32) (local $at i32) (local $end i32)
    (local.set $list (call $take (i32.const 8)))
    (local.set $answer (call $take (i32.shl (local.get $rows) (i32.const 3))))
    (i32.store (local.get $list) (local.get $answer))
    (i32.store offset=4 (local.get $list) (local.get $rows))
    (local.set $at (local.get $answer))
    (local.set $end (i32.add (local.get $answer) (i32.shl (local.get $rows) (i32.const 3))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (i64.store (local.get $at) (call $rank (local.get $of)))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (local.set $of (i32.add (local.get $of) (local.get $size)))
        (br $next)))
    (local.get $list))

  ;; The numbers of a candidate stand behind its two texts.
  (func (export "bench:records/scoring@0.1.0#price") (param $of i32) (param $rows i32) (result i32)
    (call $ranks (i32.add (local.get $of) (i32.const 16)) (local.get $rows) (i32.const 64)))
  (func (export "bench:records/scoring@0.1.0#price-numbers") (param $of i32) (param $rows i32) (result i32)
    (call $ranks (local.get $of) (local.get $rows) (i32.const 48)))

  (func $give-back (param i32) (global.set $top (i32.const 1024)))
  (export "cabi_post_bench:records/scoring@0.1.0#price" (func $give-back))
  (export "cabi_post_bench:records/scoring@0.1.0#price-numbers" (func $give-back))
)
