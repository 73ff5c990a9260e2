//! Tensors and their names, out of pickles that are made here and of the corpus.

mod corpus;
mod descriptors;
mod hostile;
mod made;
mod names;
mod numpy;
mod sha256;

use weigh_pickle::state::{Named, Options, State};
use weigh_pickle::tensor::{Reading, Tensor, TensorReader};
use weigh_pickle::view::View;
use weigh_pickle::{Error, Graph, Limits, NodeId, run};

/// The graph of a pickle that can be read.
fn graph(bytes: &[u8]) -> (Graph<'_>, NodeId) {
    let program = run(bytes, &Limits::default());
    assert_eq!(program.error, None);
    (program.graph, program.root.unwrap())
}

/// The tensor that a pickle is, and nothing else.
fn one(bytes: &[u8]) -> Result<Tensor, Error> {
    let (graph, root) = graph(bytes);
    let mut reader = TensorReader::new(&graph, &Limits::default());
    assert!(reader.is_tensor(root));
    match reader.read(root)? {
        Reading::Tensor(id) => Ok(reader.get(id).unwrap().clone()),
        Reading::Other(refusal) => panic!("{refusal}"),
    }
}

/// The names of the tensors of a pickle, and what was left out.
fn state(bytes: &[u8], options: &Options<'_>) -> Result<State, Error> {
    let (graph, root) = graph(bytes);
    let mut reader = TensorReader::new(&graph, &Limits::default());
    State::read(&mut reader, root, options, &Limits::default())
}

/// The bytes of a view, one run after the other.
fn gathered(view: &View, storage: &[u8]) -> Vec<u8> {
    let place = |at: u64| usize::try_from(at).unwrap();
    let runs = view.runs();
    runs.iter().flat_map(|run| &storage[place(run.start)..place(run.end)]).copied().collect()
}

fn names(state: &State) -> Vec<&str> {
    state.tensors.iter().map(|Named { name, .. }| name.as_str()).collect()
}
