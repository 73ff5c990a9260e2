//! Any bytes as pickles: they are run, their tensors named, and torch's own question asked. Nothing panics, and a name
//! outside the table never means anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_pickle::state::{Options, State};
use weigh_pickle::tensor::TensorReader;
use weigh_pickle::{Limits, Verdict, known, run_all, weights_only};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { nodes: 1 << 20, opcodes: 1 << 20, ..Limits::default() };
    for program in run_all(bytes, &limits) {
        let is_data = program.verdict() == Verdict::DataOnly;
        for used in &program.globals {
            if let Some((module, name)) = program.graph.global(used.node) {
                assert!(!is_data || known::known(module, name).is_some(), "{module}.{name}");
            }
        }
        assert!(!is_data || program.foreign.is_empty());
        let Some(root) = program.root else { continue };
        let mut reader = TensorReader::new(&program.graph, &limits);
        let options = Options { key: None, all: true, modules: true, partial: true };
        let _state = State::read(&mut reader, root, &options, &limits);
    }
    let _taken = weights_only(bytes, &limits);
});
