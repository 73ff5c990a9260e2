//! Headers with names as real models have them, spelled as the reference writes them.

use std::fmt::Write;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use weigh_format::{Dtype, HashKey, order};

/// The key of every hash table here: no file here has an author to hide it from.
pub(crate) const KEY: HashKey = HashKey::new(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);

/// A tensor to declare.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
}

/// In which order a header lists its tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// As people count.
    Natural,
    /// As the reference writes: by dtype, then by the bytes of the name.
    Lexical,
    /// Shuffled, the same way every time.
    Random,
}

impl Order {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Lexical => "lexical",
            Self::Random => "random",
        }
    }

    /// Brings tensors into this order.
    pub(crate) fn apply(self, tensors: &mut Vec<Tensor>) {
        match self {
            Self::Natural => {
                let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
                let places = order::natural(&names, KEY);
                *tensors = places
                    .into_iter()
                    .filter_map(|place| tensors.get(usize::try_from(place).ok()?).cloned())
                    .collect();
            }
            Self::Lexical => tensors.sort_by(|one, other| {
                let by_dtype = other.dtype.cmp(&one.dtype);
                by_dtype.then_with(|| one.name.cmp(&other.name))
            }),
            Self::Random => {
                // Fisher and Yates, with a multiplicative generator (Lehmer's, modulo 2^61 - 1).
                let mut state = 1_u64;
                for last in (1..tensors.len()).rev() {
                    let product = u128::from(state) * 0x2545_f491_4f6c_dd1d;
                    state = u64::try_from(product % ((1 << 61) - 1)).unwrap_or(1);
                    tensors.swap(last, usize::try_from(state).unwrap_or_default() % (last + 1));
                }
            }
        }
    }
}

/// `count` tensors of a mixture of experts, named in the usual way.
pub(crate) fn experts(count: usize) -> Vec<Tensor> {
    let layers = (0..).flat_map(|layer| {
        let attention = ["q", "k", "v", "o"]
            .map(|letter| format!("model.layers.{layer}.self_attn.{letter}_proj.weight"));
        let norms = ["input", "post_attention"]
            .map(|place| format!("model.layers.{layer}.{place}_layernorm.weight"));
        let experts = (0..16).flat_map(move |expert| {
            [1, 2, 3].map(|which| format!("model.layers.{layer}.experts.{expert}.w{which}.weight"))
        });
        norms.into_iter().chain(attention).chain(experts)
    });
    let tensor = |name: String| {
        let norm = name.ends_with("norm.weight");
        Tensor {
            dtype: if norm { Dtype::F32 } else { Dtype::BF16 },
            shape: if norm { vec![8] } else { vec![8, 4] },
            name,
        }
    };
    layers.map(tensor).take(count).collect()
}

/// `count` tensors of a very large mixture of experts, with names short enough that 900 000 fit in
/// the 100 MB that readers take for a header.
pub(crate) fn many_experts(count: usize) -> Vec<Tensor> {
    let names = (0..).flat_map(|layer| {
        (0..256).flat_map(move |expert| {
            [1, 2, 3].map(|which| format!("layers.{layer}.ffn.experts.{expert}.w{which}.weight"))
        })
    });
    let tensor = |name| Tensor { name, dtype: Dtype::BF16, shape: vec![8, 4] };
    names.map(tensor).take(count).collect()
}

/// The tensors of a model of 70 billion parameters, 141 GB of them.
pub(crate) fn seventy_billion() -> Vec<Tensor> {
    const HIDDEN: u64 = 8192;
    const INNER: u64 = 28_672;
    const KEYS: u64 = 1024;
    const WORDS: u64 = 128_256;
    let tensor =
        |name: String, shape: &[u64]| Tensor { name, dtype: Dtype::BF16, shape: shape.to_vec() };
    let mut tensors = vec![
        tensor("lm_head.weight".into(), &[WORDS, HIDDEN]),
        tensor("model.embed_tokens.weight".into(), &[WORDS, HIDDEN]),
        tensor("model.norm.weight".into(), &[HIDDEN]),
    ];
    for layer in 0..80 {
        for (part, shape) in [
            ("input_layernorm", &[HIDDEN][..]),
            ("mlp.down_proj", &[HIDDEN, INNER]),
            ("mlp.gate_proj", &[INNER, HIDDEN]),
            ("mlp.up_proj", &[INNER, HIDDEN]),
            ("post_attention_layernorm", &[HIDDEN]),
            ("self_attn.k_proj", &[KEYS, HIDDEN]),
            ("self_attn.o_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.q_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.v_proj", &[KEYS, HIDDEN]),
        ] {
            tensors.push(tensor(format!("model.layers.{layer}.{part}.weight"), shape));
        }
    }
    Order::Lexical.apply(&mut tensors);
    tensors
}

/// A file up to its data section, and the length of that section.
#[derive(Debug)]
pub(crate) struct Header {
    /// The length field, the JSON and its padding.
    pub(crate) bytes: Vec<u8>,
    pub(crate) data_len: u64,
}

impl Header {
    /// The JSON and its padding.
    pub(crate) fn json(&self) -> &[u8] {
        &self.bytes[8..]
    }

    pub(crate) fn file_len(&self) -> u64 {
        count(self.bytes.len()) + self.data_len
    }

    /// Writes a file with this header and no data: a hole, which takes no space.
    pub(crate) fn write_sparse(&self, path: &Path) -> Result<()> {
        let shown = path.display();
        let mut file = File::create(path).with_context(|| format!("cannot create {shown}"))?;
        file.write_all(&self.bytes)
            .and_then(|()| file.set_len(self.file_len()))
            .with_context(|| format!("cannot write {shown}"))
    }
}

/// The header of a file with these tensors, in the order given and packed in that order.
pub(crate) fn header(tensors: &[Tensor]) -> Header {
    let mut json = String::from("{");
    let mut data_len = 0;
    for tensor in tensors {
        if json.len() > 1 {
            json.push(',');
        }
        let elements: u64 = tensor.shape.iter().product();
        let end = data_len + elements * u64::from(tensor.dtype.bits()) / 8;
        let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
        // Writing to a String does not fail.
        let _ = write!(
            json,
            r#""{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{data_len},{end}]}}"#,
            tensor.name,
            tensor.dtype.name(),
            shape.join(","),
        );
        data_len = end;
    }
    json.push('}');
    Header { bytes: with_length(json), data_len }
}

/// `json`, padded with spaces to a multiple of 8 bytes, after its length.
fn with_length(mut json: String) -> Vec<u8> {
    while !json.len().is_multiple_of(8) {
        json.push(' ');
    }
    let mut bytes = count(json.len()).to_le_bytes().to_vec();
    bytes.extend_from_slice(json.as_bytes());
    bytes
}

/// A number of things in memory, in the type of file offsets.
pub(crate) fn count(things: usize) -> u64 {
    u64::try_from(things).unwrap_or(u64::MAX)
}
