;; Is no component.
(module (func (export "price")))
