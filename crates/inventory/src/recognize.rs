//! What a checkpoint looks like, as far as names, dtypes and shapes prove it.
//!
//! Each answer is a [`Trait`] with the names it rests on. Where the names prove nothing, nothing is
//! said. Some answers are about names only ("names as in GPT-2"): that a checkpoint uses the names
//! of a family does not make it of that family, and the texts do not claim so.
//!
//! | code | what is proven |
//! |---|---|
//! | `lora` | pairs of low-rank factors whose ranks agree |
//! | `dora`, `loha`, `lokr` | other adapters, by the names of their factors |
//! | `quantized` | weights packed or scaled by a [`Scheme`](crate::quantization::Scheme) |
//! | `diffusion-model`, `vae`, `text-encoder`, … | names as in a known family ([`NAMING_CODES`]) |
//! | `layers` | numbered blocks under one prefix |
//! | `mixture-of-experts` | numbered or stacked experts |
//! | `embedding` | a token embedding and its two dimensions |
//! | `no-lm-head` | a decoder's token embedding, and no tensor named as an output head |
//! | `optimizer-state` | the running averages of an optimizer |

mod adapter;
mod blocks;
mod embedding;
mod naming;
mod quantized;

use std::fmt::Write;

use weigh_format::text::{self, shortened};

use crate::Item;
use crate::quantization::Siblings;
pub use naming::NAMING_CODES;

/// Something that is proven about a checkpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Trait {
    /// A stable code.
    pub code: &'static str,
    /// One line that says it. Text from names in it is not escaped.
    pub text: String,
    /// Some of the names it rests on, the first in the order of the items. Long ones are cut.
    pub evidence: Vec<String>,
}

impl Trait {
    /// Most names that are given as evidence.
    pub const EVIDENCE: usize = 3;
    /// About how many bytes of a name are given, in evidence and in texts.
    pub const NAME_BYTES: usize = text::SHORT_BYTES;
}

/// What `items` prove, in the order of the table above. The same items give the same answer.
///
/// ```
/// use weigh_format::Dtype;
/// use weigh_inventory::Item;
/// use weigh_inventory::recognize::recognize;
///
/// let item = |name, shape| Item { name, dtype: Some(Dtype::F16), shape: Some(shape), bytes: 0 };
/// let traits = recognize(&[
///     item("base_model.model.q_proj.lora_A.weight", &[16, 4096]),
///     item("base_model.model.q_proj.lora_B.weight", &[4096, 16]),
/// ]);
/// assert_eq!(traits[0].code, "lora");
/// assert_eq!(traits[0].text, "LoRA adapter of 1 module, rank 16, PEFT names (lora_A, lora_B): q_proj");
/// ```
#[must_use]
pub fn recognize(items: &[Item<'_>]) -> Vec<Trait> {
    recognize_with(items, &Siblings::new(items))
}

/// The same, with siblings that are known already.
#[must_use]
pub fn recognize_with(items: &[Item<'_>], siblings: &Siblings<'_>) -> Vec<Trait> {
    let adapters = adapter::traits(items);
    let is_adapter = !adapters.is_empty();
    let mut traits = adapters;
    traits.extend(quantized::traits(items, siblings));
    traits.extend(naming::families(items));
    traits.extend(blocks::layers(items));
    traits.extend(blocks::experts(items));
    let embeddings = embedding::traits(items);
    let no_head = if is_adapter { None } else { embedding::no_head(items) };
    traits.extend(embeddings.into_iter().chain(no_head));
    traits.extend(naming::optimizer(items));
    traits
}

/// The first few names that something rests on, and how many there are.
#[derive(Clone, Debug, Default)]
struct Evidence<'a> {
    first: Vec<&'a str>,
    count: u64,
}

impl<'a> Evidence<'a> {
    fn add(&mut self, name: &'a str) {
        self.count = self.count.saturating_add(1);
        if self.first.len() < Trait::EVIDENCE {
            self.first.push(name);
        }
    }

    fn proves(self, code: &'static str, text: impl Into<String>) -> Trait {
        let evidence = self.first.into_iter().map(|name| shortened(name).into_owned()).collect();
        Trait { code, text: text.into(), evidence }
    }
}

/// `1 module`, `2 modules`.
fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The smallest and largest of some numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Extent {
    least: u64,
    most: u64,
}

impl Extent {
    fn of(numbers: impl IntoIterator<Item = u64>) -> Option<Self> {
        numbers.into_iter().fold(None, |extent: Option<Self>, number| {
            Some(match extent {
                None => Self { least: number, most: number },
                Some(Self { least, most }) => {
                    Self { least: least.min(number), most: most.max(number) }
                }
            })
        })
    }

    /// `16`, or `8 to 16`.
    fn text(self) -> String {
        let mut text = self.least.to_string();
        if self.most != self.least {
            // Writing to a string does not fail.
            let _ = write!(text, " to {}", self.most);
        }
        text
    }
}

#[cfg(test)]
mod tests;
