use std::collections::HashSet;

use Dtype::{F4, F8_E4M3, F8_E5M2, F8_E8M0, F16, F32, I8, I32, I64, U8, U32};
use proptest::prelude::*;

use super::*;
use crate::item::{Entry, items};

/// The role of the first, and whether all others are its helpers.
fn roles(entries: &[Entry<'_>]) -> (Role, bool) {
    let items = items(entries);
    let siblings = Siblings::new(&items);
    let helpers = items[1..].iter().all(|item| siblings.role(item) == Role::Helper);
    (siblings.role(&items[0]), helpers)
}

fn weight(scheme: Scheme, parameters: impl Into<Option<u64>>) -> Role {
    Role::Weight { scheme: Some(scheme), parameters: parameters.into() }
}

#[test]
fn every_scheme_is_told_by_names_and_shapes() {
    let covered: HashSet<Scheme> = SCHEMES.iter().map(|case| case.0).collect();
    assert!(Scheme::ALL.iter().all(|scheme| covered.contains(scheme)));
    for &(scheme, parameters, entries) in SCHEMES {
        assert_eq!(roles(entries), (weight(scheme, parameters), true), "{entries:?}");
    }
}

type Case = (Scheme, Option<u64>, &'static [Entry<'static>]);

/// A weight first, then its helpers.
const SCHEMES: &[Case] = &[
    // 4 bits, then 3 bits, with the order of inputs; then 4 bits without.
    (
        Scheme::Gptq,
        Some(64 * 48),
        &[
            ("m.qweight", I32, &[8, 48]),
            ("m.qzeros", I32, &[2, 6]),
            ("m.scales", F16, &[2, 48]),
            ("m.g_idx", I32, &[64]),
        ],
    ),
    (
        Scheme::Gptq,
        Some(64 * 64),
        &[("qweight", I32, &[6, 64]), ("scales", F16, &[2, 64]), ("g_idx", I32, &[64])],
    ),
    (
        Scheme::Gptq,
        Some(64 * 48),
        &[("m.qweight", I32, &[8, 48]), ("m.qzeros", I32, &[2, 6]), ("m.scales", F16, &[2, 48])],
    ),
    (
        Scheme::Awq,
        Some(64 * 48),
        &[("m.qweight", I32, &[64, 6]), ("m.qzeros", I32, &[2, 6]), ("m.scales", F16, &[2, 48])],
    ),
    (
        Scheme::Bitsandbytes4,
        Some(4096),
        &[
            ("m.weight", U8, &[2048, 1]),
            ("m.weight.absmax", U8, &[64]),
            ("m.weight.quant_map", F32, &[16]),
            ("m.weight.nested_absmax", F32, &[1]),
            ("m.weight.nested_quant_map", F32, &[256]),
            ("m.weight.quant_state.bitsandbytes__nf4", U8, &[90]),
        ],
    ),
    (
        Scheme::Bitsandbytes8,
        Some(32),
        &[("m.weight", I8, &[4, 8]), ("m.SCB", F32, &[4]), ("m.weight_format", U8, &[])],
    ),
    (
        Scheme::Mxfp4,
        Some(4 * 8 * 3 * 32),
        &[("e.down_proj_blocks", U8, &[4, 8, 3, 16]), ("e.down_proj_scales", U8, &[4, 8, 3])],
    ),
    (
        Scheme::Mxfp4,
        Some(2 * 64),
        &[("m.weight_packed", U8, &[2, 32]), ("m.weight_scale", F8_E8M0, &[2, 2])],
    ),
    (
        Scheme::Nvfp4,
        Some(2 * 64),
        &[
            ("m.weight", U8, &[2, 32]),
            ("m.weight_scale", F8_E4M3, &[2, 4]),
            ("m.weight_scale_2", F32, &[]),
            ("m.input_scale", F32, &[]),
        ],
    ),
    (
        Scheme::Nvfp4,
        Some(2 * 64),
        &[
            ("m.weight_packed", U8, &[2, 32]),
            ("m.weight_scale", F8_E4M3, &[2, 4]),
            ("m.weight_global_scale", F32, &[1]),
            ("m.input_global_scale", F32, &[1]),
        ],
    ),
    (Scheme::Nvfp4, Some(128), &[("m.weight", F4, &[2, 64]), ("m.weight_scale", F8_E4M3, &[2, 4])]),
    (
        Scheme::CompressedTensors,
        Some(16 * 64),
        &[
            ("m.weight_packed", I32, &[16, 8]),
            ("m.weight_scale", F16, &[16, 2]),
            ("m.weight_shape", I64, &[2]),
            ("m.weight_zero_point", I32, &[2, 2]),
        ],
    ),
    (
        Scheme::CompressedTensors,
        Some(16 * 64),
        &[
            ("m.weight_packed", I32, &[16, 8]),
            ("m.weight_scale", F16, &[16, 2]),
            ("m.weight_g_idx", I32, &[64]),
        ],
    ),
    // Neither zero points nor an order: any width would fit.
    (
        Scheme::CompressedTensors,
        None,
        &[
            ("m.weight_packed", I32, &[16, 8]),
            ("m.weight_scale", F16, &[16, 2]),
            ("m.weight_shape", I64, &[2]),
        ],
    ),
    (
        Scheme::Fp8,
        Some(32),
        &[("m.weight", F8_E4M3, &[4, 8]), ("m.weight_scale_inv", F32, &[1, 1])],
    ),
    (
        Scheme::Fp8,
        Some(32),
        &[("experts.gate_up_proj", F8_E5M2, &[4, 8]), ("experts.gate_up_proj_scale", F32, &[4, 1])],
    ),
    (
        Scheme::ComfyFp8,
        Some(32),
        &[
            ("m.weight", F8_E4M3, &[4, 8]),
            ("m.scale_weight", F32, &[1]),
            ("m.scale_input", F32, &[1]),
            ("scaled_fp8", F8_E4M3, &[2]),
        ],
    ),
    (
        Scheme::Int8,
        Some(32),
        &[
            ("m.weight", I8, &[4, 8]),
            ("m.weight_scale", F32, &[4, 1]),
            ("m.weight_zero_point", I8, &[4, 1]),
        ],
    ),
    (
        Scheme::Mlx,
        None,
        &[("m.weight", U32, &[4, 8]), ("m.scales", F16, &[4, 1]), ("m.biases", F16, &[4, 1])],
    ),
];

#[test]
fn a_name_alone_proves_nothing() {
    for entries in [
        &[("m.scales", F32, &[4][..]), ("m.g_idx", I32, &[4]), ("m.absmax", U8, &[4])][..],
        &[("m.weight_scale", F32, &[1]), ("m.weight", F16, &[4, 4])],
        &[("m.weight", F8_E4M3, &[4, 4]), ("n.weight_scale", F32, &[1])],
        &[("m.weight", U8, &[4, 32]), ("m.weight_scale", F8_E4M3, &[4, 5])],
        &[("x_blocks", U8, &[4, 3, 16]), ("x_scales", U8, &[4, 2])],
        &[("x_blocks", U8, &[4, 3, 15]), ("x_scales", U8, &[4, 3])],
        &[("m.weight", U8, &[8, 1]), ("m.weight.quant_map", F32, &[16])],
        &[("m.weight", U8, &[8, 1]), ("m.weight.absmax", F32, &[1])],
        &[("SCB", F32, &[4]), ("weight", I32, &[4])],
        &[("scaled_fp8", F32, &[2]), ("w", U8, &[2])],
    ] {
        let items = items(entries);
        let siblings = Siblings::new(&items);
        for item in &items {
            assert_eq!(siblings.role(item), Role::Plain, "{} of {entries:?}", item.name);
        }
    }
}

#[test]
fn a_qweight_that_does_not_add_up_stays_unknown() {
    let unknown = Role::Weight { scheme: None, parameters: None };
    for entries in [
        &[("m.qweight", I32, &[8, 48][..])][..],
        &[("m.qweight", I32, &[8, 48]), ("m.scales", F16, &[2, 48])],
        // 5.33 bits; 0 inputs; over 64 bits.
        &[("m.qweight", I32, &[8, 48]), ("m.scales", F16, &[2, 48]), ("m.g_idx", I32, &[48])],
        &[("m.qweight", I32, &[8, 48]), ("m.scales", F16, &[2, 48]), ("m.g_idx", I32, &[0])],
        &[("m.qweight", I32, &[u64::MAX, 6]), ("m.scales", F16, &[u64::MAX, 6])],
        // AWQ whose zero points are of other groups.
        &[("m.qweight", I32, &[64, 6]), ("m.scales", F16, &[2, 48]), ("m.qzeros", I32, &[3, 6])],
    ] {
        assert_eq!(roles(entries).0, unknown, "{entries:?}");
    }
}

#[test]
fn an_e8m0_tensor_is_never_a_weight() {
    assert_eq!(roles(&[("weight", F8_E8M0, &[4, 4])]).0, Role::Helper);
}

#[test]
fn codes_are_unique() {
    let codes: HashSet<&str> = Scheme::ALL.iter().map(|scheme| scheme.code()).collect();
    assert_eq!(codes.len(), Scheme::ALL.len());
}

proptest! {
    #[test]
    fn a_helper_has_a_weight_beside_it(
        entries in prop::collection::vec((
            "(m\\.)?(qweight|scales|qzeros|g_idx|weight(_packed|_scale|_g_idx|_zero_point)?|x_blocks|x_scales|scaled_fp8)",
            prop::sample::select(&Dtype::ALL[..]),
            prop::collection::vec(prop_oneof![0_u64..70, Just(u64::MAX), Just(1 << 60)], 0..4),
        ), 0..12),
    ) {
        let entries: Vec<Entry<'_>> =
            entries.iter().map(|(name, dtype, shape)| (name.as_str(), *dtype, shape.as_slice())).collect();
        let items = items(&entries);
        let siblings = Siblings::new(&items);
        let is_weight = |item: &Item<'_>| matches!(siblings.role(item), Role::Weight { .. });
        for item in &items {
            let (module, leaf) = split(item.name);
            // These two say by themselves what they are.
            let is_told_alone = item.dtype == Some(F8_E8M0) || leaf == "scaled_fp8";
            if siblings.role(item) == Role::Helper && !is_told_alone {
                let mut beside = items.iter().filter(|other| split(other.name).0 == module);
                prop_assert!(beside.any(is_weight), "{}", item.name);
            }
        }
    }
}
