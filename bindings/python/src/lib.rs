//! The native part of the Python package `weigh`.
//!
//! What Python sees of it is re-exported by `weigh/__init__.py` and `weigh/safetensors`, and typed in
//! `_weigh.pyi`. Here is what has to be fast or needs the library: opening, looking up, reading and writing, all
//! with the interpreter's lock released. What concerns one framework is in Python, in `weigh/_frameworks`.
//!
//! # Unsafe code
//!
//! Memory is handed to Python by address: in [`memory`], through the buffer protocol and `DLPack`, and taken from it
//! in [`given`]. Each block has its proof.
#![deny(unsafe_code)]
#![expect(
    clippy::needless_pass_by_value,
    clippy::unused_self,
    reason = "arguments and methods are as PyO3 and the protocols of Python have them"
)]

mod checkpoint;
mod drop_in;
mod error;
mod finding;
mod given;
mod index;
mod memory;
mod options;
mod safe_slice;
mod scan;
mod source;
mod stream;
mod tensor;
mod torch;
mod waiting;
mod words;
mod write;

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Runs the program `weigh` with these arguments, the first being its own name, and returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| weigh_cli::run(arguments))
}

/// The native part of the package `weigh`. What of it is public is in the package itself.
#[pymodule(gil_used = false)]
fn _weigh(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_class::<checkpoint::Checkpoint>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<memory::Buffer>()?;
    module.add_class::<stream::Stream>()?;
    module.add_function(wrap_pyfunction!(finding::check, module)?)?;
    module.add_function(wrap_pyfunction!(finding::check_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(finding::check_reader, module)?)?;
    module.add_function(wrap_pyfunction!(write::save, module)?)?;
    module.add_function(wrap_pyfunction!(write::save_sharded, module)?)?;
    module.add_function(wrap_pyfunction!(write::encode, module)?)?;
    module.add_function(wrap_pyfunction!(write::send, module)?)?;
    module.add_function(wrap_pyfunction!(torch::load_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(torch::convert, module)?)?;
    module.add_function(wrap_pyfunction!(scan::scan, module)?)?;
    module.add_function(wrap_pyfunction!(scan::scan_content, module)?)?;
    module.add_function(wrap_pyfunction!(source::end, module)?)?;
    module.add_function(wrap_pyfunction!(source::forked, module)?)?;
    let py = module.py();
    py.import("atexit")?.call_method1("register", (module.getattr("end")?,))?;
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let child = [("after_in_child", module.getattr("forked")?)].into_py_dict(py)?;
        register.call((), Some(&child))?;
    }
    drop_in::add(module)
}
