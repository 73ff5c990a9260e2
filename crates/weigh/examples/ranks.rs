//! What each of eight ranks of a tensor-parallel job reads of a model.
//!
//! `cargo run --example ranks -- PATH`. Projections whose outputs are split are cut along dimension 0, those
//! whose inputs are split along dimension 1, and what is left every rank has whole.

use weigh::io::policy::ReadOptions;
use weigh::{Checkpoint, LoadOptions, Tensor, Want};

const RANKS: u64 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("a path is missing")?;
    let checkpoint = Checkpoint::open(&path)?;
    let tensors = checkpoint.tensors();
    let ranks: Vec<Vec<Want<'_>>> = (0..RANKS)
        .map(|rank| tensors.iter().filter_map(|tensor| part(tensor, rank)).collect())
        .collect();
    let plans = checkpoint.plan_ranks(&ranks)?;
    for (rank, plan) in plans.plans().iter().enumerate() {
        let explained = plan.explain(&ReadOptions::default());
        let (bytes, read) = (plan.bytes(), explained.bytes_read);
        println!("rank {rank}: {bytes} bytes, of {read} read in {} requests", explained.requests);
    }
    println!("balance {:.3}", plans.balance());
    // What one rank does.
    let Some(first) = plans.rank(0) else { return Ok(()) };
    let loaded = first.load(&LoadOptions::default())?;
    println!("rank 0 has loaded {} tensors", loaded.len());
    Ok(())
}

/// The part of a tensor that a rank needs.
fn part<'c>(tensor: &Tensor<'c>, rank: u64) -> Option<Want<'c>> {
    let inputs = ["o_proj.weight", "down_proj.weight"];
    let outputs = ["q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight"];
    if inputs.iter().any(|end| tensor.name.ends_with(end)) {
        return tensor.part(1, rank, RANKS);
    }
    let is_split =
        outputs.iter().chain(&["up_proj.weight", "embed_tokens.weight", "lm_head.weight"]);
    if is_split.copied().any(|end| tensor.name.ends_with(end)) {
        return tensor.part(0, rank, RANKS);
    }
    Some(Want::new(tensor.name))
}
