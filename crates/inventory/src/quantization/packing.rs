//! How a weight is packed, by its shape against those of its helpers.

use weigh_format::Dtype;

use super::{Scheme, Siblings, is_fp8};
use crate::Item;
use crate::item::split;

/// A quantized weight.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    /// `None` if it is packed in a way that the shapes do not tell.
    pub(super) scheme: Option<Scheme>,
    /// `None` if the shapes do not prove it.
    pub(super) parameters: Option<u64>,
}

impl Packing {
    const fn of(scheme: Scheme, parameters: Option<u64>) -> Self {
        Self { scheme: Some(scheme), parameters }
    }

    const UNKNOWN: Self = Self { scheme: None, parameters: None };
}

impl<'a> Siblings<'a> {
    /// How `item` is packed; `None` if nothing proves that it is a quantized weight.
    pub(super) fn packing(&self, item: &Item<'_>) -> Option<Packing> {
        let leaf = item.leaf();
        match item.dtype? {
            Dtype::I32 if leaf == "qweight" => Some(self.qweight(item).unwrap_or(Packing::UNKNOWN)),
            Dtype::I32 => self.packed_integers(item, leaf.strip_suffix("_packed")?),
            Dtype::U32 => {
                self.beside(item, "scales")?;
                self.beside(item, "biases")?;
                if leaf == "weight" { Some(Packing::of(Scheme::Mlx, None)) } else { None }
            }
            Dtype::U8 => self.bytes(item, leaf),
            Dtype::I8 => {
                if leaf == "weight" && self.beside(item, "SCB").is_some() {
                    return Some(Packing::of(Scheme::Bitsandbytes8, item.elements()));
                }
                self.scale(item, leaf)?;
                Some(Packing::of(Scheme::Int8, item.elements()))
            }
            Dtype::F4 => {
                let scheme = match self.scale(item, leaf)?.dtype? {
                    Dtype::F8_E4M3 => Scheme::Nvfp4,
                    Dtype::F8_E8M0 | Dtype::U8 => Scheme::Mxfp4,
                    _ => return None,
                };
                Some(Packing::of(scheme, item.elements()))
            }
            dtype if is_fp8(dtype) => {
                if leaf == "weight" && self.beside(item, "scale_weight").is_some() {
                    return Some(Packing::of(Scheme::ComfyFp8, item.elements()));
                }
                if self.scale(item, leaf).is_none() {
                    self.beside(item, &format!("{leaf}_scale_inv"))?;
                }
                Some(Packing::of(Scheme::Fp8, item.elements()))
            }
            _ => None,
        }
    }

    /// GPTQ: `[inputs · bits / 32, outputs]`. AWQ: `[inputs, outputs · bits / 32]`.
    fn qweight(&self, item: &Item<'_>) -> Option<Packing> {
        let [rows, columns] = dimensions(item)?;
        let [groups, outputs] = dimensions(self.beside(item, "scales")?)?;
        let zeros = self.beside(item, "qzeros").and_then(dimensions);
        if columns == outputs {
            let inputs = match self.beside(item, "g_idx").and_then(dimensions) {
                Some([inputs]) => {
                    width(rows, inputs)?;
                    inputs
                }
                // Zero points are packed as the weights are, but along the outputs.
                None => match zeros? {
                    [rows_of_zeros, packed] if rows_of_zeros == groups => {
                        unpacked(rows, width(packed, outputs)?)?
                    }
                    _ => return None,
                },
            };
            return Some(Packing::of(Scheme::Gptq, inputs.checked_mul(outputs)));
        }
        width(columns, outputs)?;
        if zeros == Some([groups, columns]) {
            return Some(Packing::of(Scheme::Awq, rows.checked_mul(outputs)));
        }
        None
    }

    /// `weight_packed` of compressed-tensors: `[outputs, inputs · bits / 32]`.
    fn packed_integers(&self, item: &Item<'_>, base: &str) -> Option<Packing> {
        let scale = self.beside(item, &format!("{base}_scale"))?;
        let parameters = || {
            let [outputs, packed] = dimensions(item)?;
            let order = self.beside(item, &format!("{base}_g_idx")).and_then(dimensions);
            let inputs = if let Some([inputs]) = order {
                width(packed, inputs)?;
                inputs
            } else {
                let [_, groups] = dimensions(scale)?;
                let zeros = self.beside(item, &format!("{base}_zero_point"))?;
                let [packed_zeros, groups_of_zeros] = dimensions(zeros)?;
                if groups != groups_of_zeros {
                    return None;
                }
                unpacked(packed, width(packed_zeros, outputs)?)?
            };
            outputs.checked_mul(inputs)
        };
        Some(Packing::of(Scheme::CompressedTensors, parameters()))
    }

    /// Weights in bytes: bitsandbytes, or two 4-bit floats a byte with a scale for a run of bytes.
    fn bytes(&self, item: &Item<'_>, leaf: &str) -> Option<Packing> {
        let pairs = item.elements().and_then(|elements| elements.checked_mul(2));
        if let Some(map) = self.get(Some(item.name), "quant_map") {
            self.get(Some(item.name), "absmax")?;
            return match dimensions(map)? {
                [16] => Some(Packing::of(Scheme::Bitsandbytes4, pairs)),
                [256] => Some(Packing::of(Scheme::Bitsandbytes8, item.elements())),
                _ => None,
            };
        }
        let shape = item.shape?;
        if let Some(base) = leaf.strip_suffix("_blocks") {
            let scales = self.beside(item, &format!("{base}_scales"))?.shape?;
            let (run, blocks) = shape.split_last()?;
            return if *run == 16 && blocks == scales {
                Some(Packing::of(Scheme::Mxfp4, pairs))
            } else {
                None
            };
        }
        let scale = self.scale(item, leaf.strip_suffix("_packed").unwrap_or(leaf))?;
        let (bytes, rows) = shape.split_last()?;
        let (scales, rows_of_scales) = scale.shape?.split_last()?;
        if rows != rows_of_scales {
            return None;
        }
        let covers = |run: u64| scales.checked_mul(run) == Some(*bytes);
        match scale.dtype? {
            Dtype::F8_E4M3 if covers(8) => Some(Packing::of(Scheme::Nvfp4, pairs)),
            Dtype::F8_E8M0 | Dtype::U8 if covers(16) => Some(Packing::of(Scheme::Mxfp4, pairs)),
            _ => None,
        }
    }

    fn scale(&self, item: &Item<'_>, base: &str) -> Option<&'a Item<'a>> {
        self.beside(item, &format!("{base}_scale"))
    }

    /// The tensor of this last component in the module of `item`.
    fn beside(&self, item: &Item<'_>, leaf: &str) -> Option<&'a Item<'a>> {
        self.get(split(item.name).0, leaf)
    }
}

/// The dimensions of an item that has this many, none 0.
fn dimensions<const RANK: usize>(item: &Item<'_>) -> Option<[u64; RANK]> {
    let dimensions: [u64; RANK] = item.shape?.try_into().ok()?;
    if dimensions.contains(&0) { None } else { Some(dimensions) }
}

/// The bits of each of `values` that take `words` words of 32 bits exactly: 1 to 8.
fn width(words: u64, values: u64) -> Option<u64> {
    let bits = words.checked_mul(32)?;
    let width = bits.checked_div(values)?;
    if width.checked_mul(values) == Some(bits) && (1..=8).contains(&width) {
        Some(width)
    } else {
        None
    }
}

/// How many values of `width` bits `words` words of 32 bits hold exactly.
fn unpacked(words: u64, width: u64) -> Option<u64> {
    let bits = words.checked_mul(32)?;
    if bits.checked_rem(width)? == 0 { bits.checked_div(width) } else { None }
}
