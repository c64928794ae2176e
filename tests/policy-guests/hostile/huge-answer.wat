;; Answers nearly all the memory it is granted.
(func $price (param i32 i32 i32 i32) (result i32)
  (drop (memory.grow (i32.const 120)))
  (i32.store (i32.const 4) (i32.const 983040))
  (i32.const 0))
