;; Answers nothing.
(func $price (param i32 i32 i32 i32) (result i32) (i32.const 0))
