//! The generated bindings of the contract, as a host calls it. What must not enter: what the calls mean.

wasmtime::component::bindgen!({
    path: "../../sdk/wit",
    world: "policy",
    ownership: Borrowing { duplicate_if_necessary: true },
});

pub use exports::whittle::policy::scoring;
