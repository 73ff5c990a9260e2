//! Token embeddings, and whether an output head is stored beside them.

use weigh_format::Dtype;

use super::{Evidence, Trait, shortened};
use crate::Item;
use crate::item::split;

/// Most embeddings that are reported.
const EMBEDDINGS: usize = 4;

/// The modules that hold a token embedding, and whether decoders name it so.
const MODULES: [(&str, bool); 6] = [
    ("embed_tokens", true),
    ("wte", true),
    ("tok_embeddings", true),
    ("embed_in", true),
    ("word_embeddings", false),
    ("token_embedding", false),
];

/// Components that name an output head.
const HEADS: [&str; 3] = ["lm_head", "embed_out", "output"];

/// Token embeddings: their names and their two dimensions.
pub(super) fn traits(items: &[Item<'_>]) -> Vec<Trait> {
    let embeddings = items.iter().filter_map(|item| Some((item, dimensions(item)?.0)));
    let trait_of = |(item, [vocabulary, hidden]): (&Item<'_>, [u64; 2])| {
        let mut evidence = Evidence::default();
        evidence.add(item.name);
        let name = shortened(item.name);
        let text =
            format!("token embedding {name}: vocabulary {vocabulary} × hidden size {hidden}");
        evidence.proves("embedding", text)
    };
    embeddings.take(EMBEDDINGS).map(trait_of).collect()
}

/// A decoder's token embedding without an output head: such models often use the embedding for
/// both, which the names cannot prove. Among one shard's names the head may just be elsewhere.
pub(super) fn no_head(items: &[Item<'_>]) -> Option<Trait> {
    let is_decoders = |item: &&Item<'_>| dimensions(item).is_some_and(|(_, decoder)| decoder);
    let embedding = items.iter().find(is_decoders)?;
    let is_head = |item: &Item<'_>| item.name.split('.').any(|part| HEADS.contains(&part));
    if items.iter().any(is_head) {
        return None;
    }
    let mut evidence = Evidence::default();
    evidence.add(embedding.name);
    Some(evidence.proves("no-lm-head", "no tensor is named lm_head, embed_out or output"))
}

/// The dimensions of a token embedding, and whether decoders name it so.
fn dimensions(item: &Item<'_>) -> Option<([u64; 2], bool)> {
    let (module, leaf) = split(item.name);
    if leaf != "weight" {
        return None;
    }
    let (_, name) = split(module?);
    let &(_, decoder) = MODULES.iter().find(|(known, _)| *known == name)?;
    // A packed embedding's dimensions are not the embedding's.
    let unpacked = matches!(item.dtype?, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64);
    let shape: [u64; 2] = item.shape?.try_into().ok()?;
    unpacked.then_some((shape, decoder))
}
