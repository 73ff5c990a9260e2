//! Which quantization schemes a checkpoint's weights follow.

use std::collections::BTreeMap;

use super::{Evidence, Trait, counted};
use crate::Item;
use crate::quantization::{Role, Siblings};

/// One trait for each scheme that occurs, and one for packed weights of unknown scheme.
pub(super) fn traits(items: &[Item<'_>], siblings: &Siblings<'_>) -> Vec<Trait> {
    let mut schemes: BTreeMap<_, Evidence<'_>> = BTreeMap::new();
    for item in items {
        if let Role::Weight { scheme, .. } = siblings.role(item) {
            schemes.entry(scheme).or_default().add(item.name);
        }
    }
    let trait_of = |(scheme, evidence): (Option<crate::quantization::Scheme>, Evidence<'_>)| {
        let weights = counted(evidence.count, "weight");
        let text = match scheme {
            Some(scheme) => format!("quantized, {scheme} [{}]: {weights}", scheme.code()),
            None => format!("quantized in a way that the shapes do not tell: {weights}"),
        };
        evidence.proves("quantized", text)
    };
    schemes.into_iter().map(trait_of).collect()
}
