//! Which tensor holds packed weights, and which only helps to unpack them.
//!
//! Quantized checkpoints store a weight as several tensors: `qweight` with `scales`, `qzeros` and
//! `g_idx`; `weight` with `weight.absmax` and `weight.quant_map`. The names say which belong
//! together, and their shapes against each other often prove how many values an element packs.
//! A name alone proves nothing: `scales` is a helper only beside a `qweight` that it fits.
//!
//! Values are not looked at, nor is a configuration file: where shapes leave the packing open, as
//! MLX's and some of compressed-tensors' do, it stays open here.

use std::collections::HashMap;
use std::fmt;

use weigh_format::Dtype;

use crate::Item;
use crate::item::split;

mod packing;

/// How a checkpoint's weights are quantized.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Scheme {
    /// GPTQ: `qweight` packed along the input dimension.
    Gptq,
    /// AWQ: `qweight` packed along the output dimension.
    Awq,
    /// bitsandbytes, 4 bits: `weight` of bytes with `absmax` and a `quant_map` of 16 values.
    Bitsandbytes4,
    /// bitsandbytes, 8 bits: `weight` of `I8` with `SCB`, or a `quant_map` of 256 values.
    Bitsandbytes8,
    /// MXFP4: `_blocks` and `_scales`, or bytes with one E8M0 scale for 32 values.
    Mxfp4,
    /// NVFP4: two values a byte with one E4M3 scale for 16 values.
    Nvfp4,
    /// compressed-tensors: `weight_packed` of `I32`.
    CompressedTensors,
    /// An 8-bit float weight with `_scale` or `_scale_inv`.
    Fp8,
    /// An 8-bit float weight with `scale_weight`, as `ComfyUI` reads it.
    ComfyFp8,
    /// An `I8` weight with `_scale`.
    Int8,
    /// MLX: `weight` of `U32` with `scales` and `biases`.
    Mlx,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Self; 11] = [
        Self::Gptq,
        Self::Awq,
        Self::Bitsandbytes4,
        Self::Bitsandbytes8,
        Self::Mxfp4,
        Self::Nvfp4,
        Self::CompressedTensors,
        Self::Fp8,
        Self::ComfyFp8,
        Self::Int8,
        Self::Mlx,
    ];

    /// A stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Gptq => "gptq",
            Self::Awq => "awq",
            Self::Bitsandbytes4 => "bitsandbytes-4bit",
            Self::Bitsandbytes8 => "bitsandbytes-8bit",
            Self::Mxfp4 => "mxfp4",
            Self::Nvfp4 => "nvfp4",
            Self::CompressedTensors => "compressed-tensors",
            Self::Fp8 => "fp8-scaled",
            Self::ComfyFp8 => "fp8-comfy",
            Self::Int8 => "int8-scaled",
            Self::Mlx => "mlx",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gptq => "GPTQ",
            Self::Awq => "AWQ",
            Self::Bitsandbytes4 => "bitsandbytes 4-bit",
            Self::Bitsandbytes8 => "bitsandbytes 8-bit",
            Self::Mxfp4 => "MXFP4",
            Self::Nvfp4 => "NVFP4",
            Self::CompressedTensors => "compressed-tensors",
            Self::Fp8 => "FP8 with scales",
            Self::ComfyFp8 => "FP8 with scales, ComfyUI names",
            Self::Int8 => "INT8 with scales",
            Self::Mlx => "MLX",
        })
    }
}

/// What a tensor is for, as far as names, dtypes and shapes prove.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Nothing proves that it has to do with quantization.
    Plain,
    /// It holds a quantized weight.
    Weight {
        /// How; `None` if the name says that it is packed, and the shapes do not say how.
        scheme: Option<Scheme>,
        /// How many parameters it holds, if that is proven.
        ///
        /// Where a packed dimension may have been padded, it is taken not to be.
        parameters: Option<u64>,
    },
    /// It helps to unpack a quantized weight: a scale, zero point, table, order or marker.
    Helper,
}

/// The tensors of a checkpoint, by name: what is asked for the role of one.
///
/// ```
/// use weigh_format::Dtype;
/// use weigh_inventory::Item;
/// use weigh_inventory::quantization::{Role, Scheme, Siblings};
///
/// let item = |name, dtype, shape| Item { name, dtype: Some(dtype), shape: Some(shape), bytes: 0 };
/// let items = [
///     item("fc.qweight", Dtype::I32, &[512, 1024]),
///     item("fc.scales", Dtype::F16, &[32, 1024]),
///     item("fc.g_idx", Dtype::I32, &[4096]),
/// ];
/// let siblings = Siblings::new(&items);
/// let (scheme, parameters) = (Some(Scheme::Gptq), Some(4096 * 1024));
/// assert_eq!(siblings.role(&items[0]), Role::Weight { scheme, parameters });
/// assert_eq!(siblings.role(&items[1]), Role::Helper);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Siblings<'a> {
    /// By module and last component. Empty if no dtype is one that weights are quantized to.
    items: HashMap<(Option<&'a str>, &'a str), &'a Item<'a>>,
}

impl<'a> Siblings<'a> {
    /// Makes `items` known by name. Of items of one name the last counts.
    #[must_use]
    pub fn new(items: &'a [Item<'a>]) -> Self {
        if !items.iter().any(|item| item.dtype.is_some_and(may_be_quantized)) {
            return Self::default();
        }
        Self { items: items.iter().map(|item| (split(item.name), item)).collect() }
    }

    /// What `item` is for.
    #[must_use]
    pub fn role(&self, item: &Item<'_>) -> Role {
        if item.dtype == Some(Dtype::F8_E8M0) {
            return Role::Helper;
        }
        if self.items.is_empty() {
            return Role::Plain;
        }
        if self.is_helper(item) {
            return Role::Helper;
        }
        match self.packing(item) {
            Some(packing) => {
                Role::Weight { scheme: packing.scheme, parameters: packing.parameters }
            }
            None => Role::Plain,
        }
    }

    fn get(&self, module: Option<&str>, leaf: &str) -> Option<&'a Item<'a>> {
        self.items.get(&(module, leaf)).copied()
    }

    fn is_helper(&self, item: &Item<'_>) -> bool {
        let (module, leaf) = split(item.name);
        let beside = |leaf: &str| self.is_quantized(self.get(module, leaf));
        match leaf {
            "scales" | "biases" if beside("weight") => true,
            "scales" | "qzeros" | "g_idx" => beside("qweight"),
            "absmax" | "quant_map" | "nested_absmax" | "nested_quant_map" => self.is_named(module),
            "SCB" | "weight_format" | "scale_weight" | "scale_input" | "comfy_quant" => {
                beside("weight")
            }
            "input_scale" | "input_global_scale" | "input_zero_point" | "output_scale" => {
                beside("weight") || beside("weight_packed")
            }
            // A marker of ComfyUI's: the dtype is the message.
            "scaled_fp8" => {
                item.dtype.is_some_and(is_fp8) && item.elements().is_some_and(|n| n <= 2)
            }
            _ if leaf.starts_with("bitsandbytes__") => {
                self.is_named(module.and_then(|module| module.strip_suffix(".quant_state")))
            }
            _ => {
                HELPER_SUFFIXES
                    .iter()
                    .filter_map(|suffix| leaf.strip_suffix(suffix))
                    .any(|base| beside(base) || beside(&format!("{base}_packed")))
                    || leaf
                        .strip_suffix("_scales")
                        .is_some_and(|base| beside(&format!("{base}_blocks")))
            }
        }
    }

    /// Whether the tensor of this name is a quantized weight.
    fn is_named(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| {
            let (module, leaf) = split(name);
            self.is_quantized(self.get(module, leaf))
        })
    }

    fn is_quantized(&self, item: Option<&Item<'_>>) -> bool {
        item.is_some_and(|item| self.packing(item).is_some())
    }
}

/// What a name adds to that of a weight to name a helper of it.
const HELPER_SUFFIXES: [&str; 7] =
    ["_scale", "_scale_inv", "_scale_2", "_global_scale", "_zero_point", "_shape", "_g_idx"];

fn may_be_quantized(dtype: Dtype) -> bool {
    is_fp8(dtype) || matches!(dtype, Dtype::F4 | Dtype::U8 | Dtype::I8 | Dtype::I32 | Dtype::U32)
}

/// Whether `dtype` is an 8-bit float that weights are stored in; E8M0 holds scales alone.
fn is_fp8(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F8_E4M3 | Dtype::F8_E5M2 | Dtype::F8_E4M3FNUZ | Dtype::F8_E5M2FNUZ)
}

#[cfg(test)]
mod tests;
