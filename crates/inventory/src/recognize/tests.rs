use proptest::prelude::*;
use weigh_format::Dtype::{self, BF16, F16, F32, I32, U8};

use super::*;
use crate::item::{Entry, items};

fn found(entries: &[Entry<'_>]) -> Vec<Trait> {
    recognize(&items(entries))
}

fn texts(entries: &[Entry<'_>]) -> Vec<(&'static str, String)> {
    found(entries).into_iter().map(|found| (found.code, found.text)).collect()
}

fn check(entries: &[Entry<'_>], want: &[(&'static str, &str)]) {
    let want: Vec<_> = want.iter().map(|&(code, text)| (code, text.to_owned())).collect();
    assert_eq!(texts(entries), want);
}

#[test]
fn nothing_proven_is_nothing_said() {
    check(&[], &[]);
    check(&[("weight", F32, &[2, 2]), ("bias", F32, &[2]), ("", F32, &[]), (".", F32, &[])], &[]);
    check(&[("layers.0.w", F32, &[2])], &[]);
    check(&[("lora_A", F32, &[8, 2]), ("lora_B", F32, &[2, 8])], &[]);
}

#[test]
fn a_lora_is_pairs_of_one_rank() {
    check(
        &[
            ("base_model.model.a.q_proj.lora_A.weight", F16, &[8, 64]),
            ("base_model.model.a.q_proj.lora_B.weight", F16, &[64, 8]),
            ("base_model.model.a.v_proj.lora_A.default.weight", F16, &[16, 64]),
            ("base_model.model.a.v_proj.lora_B.default.weight", F16, &[64, 16]),
            ("e.lora_embedding_A", F16, &[4, 1000]),
            ("e.lora_embedding_B", F16, &[64, 4]),
        ],
        &[
            (
                "lora",
                "LoRA adapter of 2 modules, ranks 8 to 16, PEFT names (lora_A, lora_B): q_proj, v_proj",
            ),
            (
                "lora",
                "LoRA adapter of 1 module, rank 4, PEFT names (lora_embedding_A, lora_embedding_B): e",
            ),
        ],
    );
    check(
        &[
            ("lora_unet_down_0_to_q.lora_down.weight", F16, &[32, 64, 1, 1]),
            ("lora_unet_down_0_to_q.lora_up.weight", F16, &[64, 32, 1, 1]),
            ("lora_unet_down_0_to_q.alpha", F16, &[]),
            ("lora_te_text_model_fc1.lora_down.weight", F16, &[32, 64]),
        ],
        &[(
            "lora",
            "LoRA adapter of 1 module, rank 32, kohya names (lora_unet_… or lora_te…, lora_down, \
             lora_up); 1 factor without a partner of the same rank",
        )],
    );
    check(
        &[
            ("unet.attn.processor.to_q_lora.down.weight", F16, &[4, 64]),
            ("unet.attn.processor.to_q_lora.up.weight", F16, &[64, 4]),
            ("m.fc.lora_down.weight", F16, &[2, 64]),
            ("m.fc.lora_up.weight", F16, &[64, 2]),
        ],
        &[
            ("lora", "LoRA adapter of 1 module, rank 2, lora_down and lora_up: fc"),
            (
                "lora",
                "LoRA adapter of 1 module, rank 4, names of diffusers attention processors \
                 (_lora.down, _lora.up): to_q",
            ),
        ],
    );
    for other in [&[64, 9][..], &[64], &[8]] {
        check(&[("q.lora_A.weight", F16, &[8, 64]), ("q.lora_B.weight", F16, other)], &[]);
    }
}

#[test]
fn other_adapters_are_told_by_their_factors() {
    check(
        &[
            ("m.q.lora_magnitude_vector.weight", F16, &[64]),
            ("u_q.hada_w1_a", F16, &[64, 4]),
            ("u_q.hada_w2_a", F16, &[64, 4]),
            ("u_k.lokr_w1", F16, &[4, 4]),
        ],
        &[
            ("dora", "DoRA magnitudes of 1 module"),
            ("loha", "LoHa adapter (Hadamard products) of 1 module"),
            ("lokr", "LoKr adapter (Kronecker products) of 1 module"),
        ],
    );
}

#[test]
fn a_mixture_of_experts_decoder() {
    let mut entries: Vec<(String, Dtype, Vec<u64>)> = vec![
        ("model.embed_tokens.weight".into(), BF16, vec![1000, 64]),
        ("model.norm.weight".into(), BF16, vec![64]),
    ];
    for layer in 0..3 {
        let base = format!("model.layers.{layer}");
        entries.push((format!("{base}.self_attn.q_proj.weight"), BF16, vec![64, 64]));
        for expert in 0..4 {
            entries.push((format!("{base}.mlp.experts.{expert}.w1.weight"), BF16, vec![8, 64]));
        }
    }
    let borrowed = |entries: &[(String, Dtype, Vec<u64>)]| {
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|(name, dtype, shape)| (name.as_str(), *dtype, shape.as_slice()))
            .collect();
        texts(&entries)
    };
    let mut want = vec![
        ("layers", "3 numbered blocks under model.layers (0 to 2)".to_owned()),
        ("mixture-of-experts", "4 experts in 3 modules".to_owned()),
        (
            "embedding",
            "token embedding model.embed_tokens.weight: vocabulary 1000 × hidden size 64"
                .to_owned(),
        ),
        ("no-lm-head", "no tensor is named lm_head, embed_out or output".to_owned()),
    ];
    assert_eq!(borrowed(&entries), want);
    entries.push(("lm_head.weight".into(), BF16, vec![1000, 64]));
    want.pop();
    assert_eq!(borrowed(&entries), want);
}

#[test]
fn blocks_need_not_start_at_0_nor_be_without_gaps() {
    check(
        &[("a.8.w", F32, &[1]), ("a.9.w", F32, &[1]), ("b.0.w", F32, &[1]), ("b.3.w", F32, &[1])],
        &[
            ("layers", "2 numbered blocks under a (8 to 9)"),
            ("layers", "2 numbered blocks under b (numbers between 0 and 3)"),
        ],
    );
    check(&[("p.0", F32, &[1]), ("p.1", F32, &[1])], &[]);
    check(
        &[("0.1.w", F32, &[1]), ("18446744073709551615.w", F32, &[1])],
        &[(
            "layers",
            "2 numbered blocks at the top level (numbers between 0 and 18446744073709551615)",
        )],
    );
}

#[test]
fn stacked_experts_agree_or_are_not_counted() {
    let stacked = ("l.experts.up", F16, &[8, 4, 4][..]);
    check(&[stacked], &[("mixture-of-experts", "8 experts in 1 module")]);
    check(&[stacked, ("l.experts.down", F16, &[9, 4, 4])], &[]);
    // Numbered ones beside it: which number to believe?
    check(&[stacked, ("l.experts.0.up", F16, &[4, 4])], &[]);
    check(
        &[("l.experts.0.up", F16, &[4, 4]), stacked, ("l.experts.1.up", F16, &[4, 4])],
        &[("layers", "2 numbered blocks under l.experts (0 to 1)")],
    );
    check(&[("l.experts.bias", F16, &[8, 4]), ("shared_experts.up", F16, &[8, 4, 4])], &[]);
}

#[test]
fn quantized_weights_are_counted_by_scheme() {
    check(
        &[
            ("m.qweight", I32, &[8, 48]),
            ("m.scales", F16, &[2, 48]),
            ("m.g_idx", I32, &[64]),
            ("n.qweight", I32, &[8, 48]),
            ("x_blocks", U8, &[4, 16]),
            ("x_scales", U8, &[4]),
        ],
        &[
            ("quantized", "quantized in a way that the shapes do not tell: 1 weight"),
            ("quantized", "quantized, GPTQ [gptq]: 1 weight"),
            ("quantized", "quantized, MXFP4 [mxfp4]: 1 weight"),
        ],
    );
}

#[test]
fn optimizer_state_is_told_by_either_end_of_a_name() {
    check(
        &[
            ("exp_avg.model.w", F32, &[1]),
            ("model.w.exp_avg_sq", F32, &[1]),
            ("exp_avgs", F32, &[1]),
        ],
        &[(
            "optimizer-state",
            "optimizer state: 2 tensors of running averages (exp_avg and the like)",
        )],
    );
}

#[test]
fn evidence_is_the_first_names_and_short() {
    let long = format!("{}.exp_avg", "é".repeat(1000));
    let traits = found(&[
        ("b.exp_avg", F32, &[1]),
        ("a.exp_avg", F32, &[1]),
        (&long, F32, &[1]),
        ("c.exp_avg", F32, &[1]),
    ]);
    let short = format!("{}…", "é".repeat(100));
    assert_eq!(traits[0].evidence, ["b.exp_avg", "a.exp_avg", &short]);
}

proptest! {
    #[test]
    fn any_names_and_shapes_are_recognized_the_same_way_twice(
        entries in prop::collection::vec((
            "((lora_A|lora_B|lora_up|experts|layers|[0-2]|weight|embed_tokens|qweight|scales|é)?[._]){0,5}(weight)?",
            prop::sample::select(&Dtype::ALL[..]),
            prop::collection::vec(prop_oneof![0_u64..5, Just(u64::MAX)], 0..4),
        ), 0..20),
    ) {
        let entries: Vec<Entry<'_>> =
            entries.iter().map(|(name, dtype, shape)| (name.as_str(), *dtype, shape.as_slice())).collect();
        prop_assert_eq!(found(&entries), found(&entries));
    }
}
