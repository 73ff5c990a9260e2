//! Families of models whose names are well known, and what optimizers call their state.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use super::{Evidence, Trait, counted};
use crate::Item;

/// Codes of the traits that say that the names are as in some family.
pub const NAMING_CODES: [&str; 7] = [
    "diffusion-model",
    "controlnet",
    "vae",
    "text-encoder",
    "vision-encoder",
    "decoder",
    "encoder-decoder",
];

/// A part of names that must occur.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// At the start of a name.
    Start(&'static str),
    /// Anywhere in a name.
    Inside(&'static str),
}

impl Part {
    fn is_in(self, name: &str) -> bool {
        match self {
            Self::Start(text) => name.starts_with(text),
            Self::Inside(text) => name.contains(text),
        }
    }
}

/// A family, told by parts of names that must all occur.
struct Family {
    code: &'static str,
    what: &'static str,
    parts: &'static [Part],
}

const fn family(code: &'static str, what: &'static str, parts: &'static [Part]) -> Family {
    Family { code, what, parts }
}

use Part::{Inside, Start};

/// Every family that is known here.
const FAMILIES: &[Family] = &[
    family(
        "diffusion-model",
        "Stable Diffusion checkpoints (model.diffusion_model)",
        &[Start("model.diffusion_model.")],
    ),
    family(
        "diffusion-model",
        "a diffusers UNet",
        &[
            Start("down_blocks."),
            Start("mid_block."),
            Start("up_blocks."),
            Start("time_embedding."),
        ],
    ),
    family(
        "diffusion-model",
        "Flux as first published",
        &[Start("double_blocks."), Start("single_blocks.")],
    ),
    family(
        "diffusion-model",
        "a diffusers Flux transformer",
        &[Start("transformer_blocks."), Start("single_transformer_blocks.")],
    ),
    family(
        "diffusion-model",
        "Stable Diffusion 3 as first published",
        &[Start("joint_blocks."), Start("x_embedder.")],
    ),
    family("controlnet", "a diffusers ControlNet", &[Start("controlnet_cond_embedding.")]),
    family("controlnet", "ControlNet as first published", &[Start("control_model.")]),
    family(
        "vae",
        "Stable Diffusion checkpoints (first_stage_model)",
        &[Start("first_stage_model.")],
    ),
    family(
        "vae",
        "a diffusers autoencoder",
        &[Start("encoder.down_blocks."), Start("decoder.up_blocks.")],
    ),
    family(
        "vae",
        "a latent-diffusion autoencoder",
        &[Start("encoder.down."), Start("decoder.up."), Start("post_quant_conv.")],
    ),
    family(
        "text-encoder",
        "Stable Diffusion checkpoints (cond_stage_model)",
        &[Start("cond_stage_model.")],
    ),
    family(
        "text-encoder",
        "Stable Diffusion XL checkpoints (conditioner.embedders)",
        &[Start("conditioner.embedders.")],
    ),
    family(
        "text-encoder",
        "the CLIP text model of transformers",
        &[Start("text_model.encoder.layers."), Start("text_model.embeddings.token_embedding.")],
    ),
    family(
        "text-encoder",
        "BERT in transformers",
        &[Inside("encoder.layer."), Inside("embeddings.word_embeddings.")],
    ),
    family(
        "vision-encoder",
        "the CLIP vision model of transformers",
        &[Start("vision_model.encoder.layers."), Start("vision_model.embeddings.")],
    ),
    family(
        "vision-encoder",
        "ViT in transformers",
        &[Inside("encoder.layer."), Inside("embeddings.patch_embeddings.")],
    ),
    family(
        "decoder",
        "Llama and its relatives in transformers",
        &[Inside("model.layers."), Inside(".self_attn.q_proj."), Inside(".mlp.gate_proj.")],
    ),
    family("decoder", "GPT-2 in transformers", &[Inside(".attn.c_attn."), Inside("wte.")]),
    family("decoder", "GPT-NeoX in transformers", &[Start("gpt_neox.layers.")]),
    family(
        "decoder",
        "Mamba in transformers",
        &[Inside(".mixer.A_log"), Inside(".mixer.dt_proj.")],
    ),
    family(
        "encoder-decoder",
        "T5 in transformers",
        &[Start("encoder.block."), Start("decoder.block."), Start("shared.")],
    ),
    family(
        "text-encoder",
        "the encoder of T5 in transformers",
        &[Start("encoder.block."), Start("shared.")],
    ),
    family(
        "encoder-decoder",
        "Whisper in transformers",
        &[Inside("encoder.conv1."), Inside("encoder.layers."), Inside(".encoder_attn.q_proj.")],
    ),
];

/// The families all of whose parts occur, in the order of the table.
pub(super) fn families(items: &[Item<'_>]) -> Vec<Trait> {
    let mut waiting: Vec<(&Family, Vec<Part>, Evidence<'_>)> = FAMILIES
        .iter()
        .map(|family| (family, family.parts.to_vec(), Evidence::default()))
        .collect();
    let random = RandomState::new();
    let mut seen: HashSet<u64> = HashSet::new();
    for item in items {
        // Blocks differ in their numbers alone, which no part speaks of: one of them is enough.
        if !seen.insert(pattern(item.name, &random)) {
            continue;
        }
        for (_, missing, evidence) in &mut waiting {
            let before = missing.len();
            missing.retain(|part| !part.is_in(item.name));
            if missing.len() < before {
                evidence.add(item.name);
            }
        }
    }
    let proven = waiting.into_iter().filter(|(_, missing, _)| missing.is_empty());
    let mut traits: Vec<Trait> = proven
        .map(|(family, _, evidence)| {
            evidence.proves(family.code, format!("names as in {}", family.what))
        })
        .collect();
    // Both halves of T5 are not its encoder alone.
    if traits.iter().any(|found| found.code == "encoder-decoder") {
        traits.retain(|found| found.text != "names as in the encoder of T5 in transformers");
    }
    traits
}

/// A hash of `name` that leaves out its numeric components.
fn pattern(name: &str, random: &RandomState) -> u64 {
    let mut hasher = random.build_hasher();
    for component in name.split('.') {
        if component.bytes().all(|byte| byte.is_ascii_digit()) {
            hasher.write_u8(0);
        } else {
            hasher.write(component.as_bytes());
        }
        hasher.write_u8(b'.');
    }
    hasher.finish()
}

/// Names of running averages that optimizers keep for each parameter.
const OPTIMIZER: [&str; 4] = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer"];

/// Whether the names are those of an optimizer's state.
pub(super) fn optimizer(items: &[Item<'_>]) -> Option<Trait> {
    let mut evidence = Evidence::default();
    for item in items {
        let first = item.name.split_once('.').map_or(item.name, |(first, _)| first);
        if OPTIMIZER.contains(&first) || OPTIMIZER.contains(&item.leaf()) {
            evidence.add(item.name);
        }
    }
    if evidence.count == 0 {
        return None;
    }
    let tensors = counted(evidence.count, "tensor");
    let text = format!("optimizer state: {tensors} of running averages (exp_avg and the like)");
    Some(evidence.proves("optimizer-state", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_of_a_family_is_listed_and_used() {
        let used: BTreeSet<&str> = FAMILIES.iter().map(|family| family.code).collect();
        assert_eq!(used, BTreeSet::from(NAMING_CODES));
    }

    #[test]
    fn a_family_needs_all_its_parts() {
        for family in FAMILIES {
            let names: Vec<String> = family
                .parts
                .iter()
                .map(|part| match part {
                    Start(text) => format!("{text}x"),
                    Inside(text) => format!("p.{text}x"),
                })
                .collect();
            let items = |names: &[String]| -> Vec<String> {
                let items: Vec<Item<'_>> = names
                    .iter()
                    .map(|name| Item { name, dtype: None, shape: None, bytes: 0 })
                    .collect();
                families(&items).into_iter().map(|found| found.text).collect()
            };
            let want = format!("names as in {}", family.what);
            assert!(items(&names).contains(&want), "{want}");
            for left_out in 0..names.len() {
                let mut rest = names.clone();
                rest.remove(left_out);
                assert!(!items(&rest).contains(&want), "{want} without {}", names[left_out]);
            }
        }
    }
}
