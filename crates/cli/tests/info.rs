//! `weigh info`, run as a program.

mod program;

use std::process::Stdio;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;

/// What the program shows of one of the examples.
fn example(arguments: &[&str]) -> String {
    let program = Program::new();
    let mut command = program.command(arguments);
    let output = command.current_dir(repository("examples")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_checkpoint_fits_one_screen() {
    for name in ["tiny", "lora", "quantized"] {
        let shown = example(&["info", name]);
        assert!(shown.lines().count() < 24, "{shown}");
        assert_eq!(shown, example(&[name]), "`weigh PATH` is `weigh info PATH`");
    }
    assert_snapshot!(example(&["info", "tiny"]), @"
    tiny  3 files, indexed
    size        127 KiB (130 064 bytes)
    tensors     39
    parameters  62.8K (62 752)
    dtypes      BF16  ███████████████████████████████▊   122 KiB  99.1%  30 tensors
                F32   ▎                                 1.13 KiB   0.9%  9 tensors
    looks like  names as in Llama and its relatives in transformers
                4 numbered blocks under model.layers (0 to 3)
                token embedding model.embed_tokens.weight: vocabulary 256 × hidden
                size 32
    largest     lm_head.weight                       BF16  [256, 32]  16.0 KiB
                model.embed_tokens.weight            BF16  [256, 32]  16.0 KiB
                model.layers.0.mlp.down_proj.weight  BF16  [32, 88]   5.50 KiB
                model.layers.0.mlp.gate_proj.weight  BF16  [88, 32]   5.50 KiB
                model.layers.0.mlp.up_proj.weight    BF16  [88, 32]   5.50 KiB
    metadata    1 pair, claimed by the file, not verified
                format  pt
    structure   valid
    ");
    assert_snapshot!(example(&["info", "lora"]), @"
    lora  one file
    size        8.96 KiB (9 176 bytes)
    tensors     16
    parameters  1.79K (1 792)
    dtypes      F32  ████████████████████████████████  7.00 KiB  100%  16 tensors
    looks like  LoRA adapter of 8 modules, rank 4, PEFT names (lora_A, lora_B):
                q_proj, v_proj  (…del.model.layers.0.self_attn.q_proj.lora_A.weight)
                4 numbered blocks under base_model.model.model.layers (0 to 3)
    largest     base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight  F32  [4, 32]  512 B
                base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight  F32  [32, 4]  512 B
                base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight  F32  [4, 32]  512 B
                base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight  F32  [4, 32]  512 B
                base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight  F32  [32, 4]  512 B
    metadata    1 pair, claimed by the file, not verified
                format  pt
    structure   valid
    ");
    assert_snapshot!(example(&["info", "quantized"]), @"
    quantized  one file
    size        85.4 KiB (87 456 bytes)
    tensors     123
    parameters  62.8K (62 752), packed into 22.4K elements, beside 7.60K in scales
                and the like
    dtypes      F16  ███████████████████▏              43.8 KiB  59.6%  39 tensors
                I32  ████████████▉                     29.7 KiB  40.4%  84 tensors
    looks like  quantized, GPTQ [gptq]: 28 weights  (…ayers.0.mlp.down_proj.qweight)
                names as in Llama and its relatives in transformers
                4 numbered blocks under model.layers (0 to 3)
                token embedding model.embed_tokens.weight: vocabulary 256 × hidden
                size 32
    largest     lm_head.weight                        F16  [256, 32]  16.0 KiB
                model.embed_tokens.weight             F16  [256, 32]  16.0 KiB
                model.layers.0.mlp.down_proj.qweight  I32  [11, 32]   1.38 KiB
                model.layers.0.mlp.gate_proj.qweight  I32  [4, 88]    1.38 KiB
                model.layers.0.mlp.up_proj.qweight    I32  [4, 88]    1.38 KiB
    metadata    4 pairs, claimed by the file, not verified
                format           pt
                gptq_bits        4
                gptq_desc_act    False
                gptq_group_size  8
    structure   valid
    ");
}

#[test]
fn a_selector_restricts_what_is_counted() {
    assert_snapshot!(example(&["info", "tiny:model.layers.[01].*", "-x", "*norm*"]), @"
    tiny:model.layers.[01].*  3 files, indexed
    size        127 KiB (130 064 bytes)
    tensors     14 of 39 selected, 45.0 KiB
    parameters  23.0K (23 040)
    dtypes      BF16  ████████████████████████████████  45.0 KiB  100%  14 tensors
    looks like  names as in Llama and its relatives in transformers
                2 numbered blocks under model.layers (0 to 1)
    largest     model.layers.0.mlp.down_proj.weight  BF16  [32, 88]  5.50 KiB
                model.layers.0.mlp.gate_proj.weight  BF16  [88, 32]  5.50 KiB
                model.layers.0.mlp.up_proj.weight    BF16  [88, 32]  5.50 KiB
                model.layers.1.mlp.down_proj.weight  BF16  [32, 88]  5.50 KiB
                model.layers.1.mlp.gate_proj.weight  BF16  [88, 32]  5.50 KiB
    metadata    1 pair, claimed by the file, not verified
                format  pt
    structure   valid
    ");
    let program = Program::new();
    program.file("a.safetensors", ONE, 8);
    assert_snapshot!(program.shown(&["info", "a.safetensors:b.*"]), @"
    exit 1
    -- stdout
    a.safetensors:b.*  one file
    size        80 B
    tensors     0 of 1 selected, 0 B
    metadata    none
    structure   valid
    -- stderr
    error: a.safetensors: no tensor name matches `b.*`
    ");
    assert_snapshot!(program.shown(&["info", "a.safetensors", "--tensors", "[", "--dtype=F16"]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: glob "[" at byte 0: [ without a closing ]
      help: Put a backslash before a character that is meant as itself.
    "#);
}

const ONE: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}          "#;

#[test]
fn several_checkpoints_have_a_block_each() {
    let program = Program::new();
    program.file("a.safetensors", ONE, 8);
    program.file("b.safetensors", &format!("{{}}{}", " ".repeat(6)), 0);
    assert_snapshot!(program.shown(&["info", "."]), @"
    exit 0
    -- stdout
    ./a.safetensors  one file
    size        80 B
    tensors     1
    parameters  2
    dtypes      F32  ████████████████████████████████  8 B  100%  1 tensor
    largest     a  F32  [2]  8 B
    metadata    none
    structure   valid

    ./b.safetensors  one file
    size        16 B
    tensors     0
    metadata    none
    structure   valid
    -- stderr
    ");
    assert_snapshot!(program.shown(&["info", "nonesuch", "a.safetensors"]), @"
    exit 2
    -- stdout
    a.safetensors  one file
    size        80 B
    tensors     1
    parameters  2
    dtypes      F32  ████████████████████████████████  8 B  100%  1 tensor
    largest     a  F32  [2]  8 B
    metadata    none
    structure   valid
    -- stderr
    error: nonesuch: no such file or folder
      help: Check the spelling of the path.
    ");
}

#[test]
fn a_damaged_checkpoint_is_shown_as_far_as_it_can_be_read() {
    let program = Program::new();
    let second = r#"{"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"c":{"dtype":"F33","shape":[4],"data_offsets":[16,32]}}"#;
    program.file("x-00001-of-00003.safetensors", ONE, 8);
    program.file("x-00002-of-00003.safetensors", second, 20);
    let index = r#"{"weight_map":{"a":"x-00001-of-00003.safetensors","b":"x-00002-of-00003.safetensors","d":"x-00003-of-00003.safetensors"}}"#;
    std::fs::write(program.path("x.safetensors.index.json"), index).unwrap();
    assert_snapshot!(program.shown(&["info", "."]), @"
    exit 1
    -- stdout
    .  3 files, indexed, 1 missing
    size        218 B in the 2 of 3 files that could be read
    tensors     4, 1 in files that were not read, 1 with bytes missing
    parameters  at least 10
    dtypes      F32      ███████████████████▎              24 B  60.0%  2 tensors
                unknown  ████████████▊                     16 B  40.0%  2 tensors
    largest     b  F32  [4]  16 B
                c  ?    [4]  16 B
                a  F32  [2]   8 B
                d  ?    ?     0 B
    metadata    none
    structure   invalid, 3 errors, 1 deviation, 1 note  (weigh check says more)
    -- stderr
    error: ./x.safetensors.index.json: the file `x-00003-of-00003.safetensors` is not there [index-shard-missing]
      help: Fetch the missing shard.
    deviation: ./x.safetensors.index.json: tensor `c` of `x-00002-of-00003.safetensors` is not in the index [index-tensor-unmapped]
      help: Some loaders take it, some do not: write the index again.
    error: ./x-00002-of-00003.safetensors: tensor `c` has the unknown dtype `F33` [dtype-unknown]
      help: No reader knows its size: have the writer use a dtype of the format.
    error: ./x-00002-of-00003.safetensors: missing at the end: 12 bytes; the tensors need 32, the file has 20, and 1 of 2 tensors are complete [data-truncated]
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    std::fs::write(program.path("page.safetensors"), "<!DOCTYPE html>").unwrap();
    assert_snapshot!(program.shown(&["info", "page.safetensors"]), @"
    exit 1
    -- stdout
    page.safetensors  one file
    size        15 B
    tensors     0
    metadata    none
    structure   invalid, 1 error  (weigh check says more)
    -- stderr
    error: page.safetensors: this is not a safetensors file but a web page saved under this name [not-safetensors]
      help: The server answered with a page, often a login or an error: download again, signed in.
    ");
}

/// A header with this metadata and one tensor.
fn with_metadata(pairs: &[(String, String)]) -> String {
    let map: serde_json::Map<String, Value> =
        pairs.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    ONE.replacen('{', &format!("{{\"__metadata__\":{},", Value::Object(map)), 1)
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
fn metadata_is_cut_to_the_screen_and_shown_whole_on_request() {
    let program = Program::new();
    let header = with_metadata(&[
        pair("format", "pt"),
        pair("ss_tags", r#"{"10_cat": {"a": 1.50, "b": []}, "x": "{not \u202e json}"}"#),
        pair("long", &"word ".repeat(100)),
        pair("lines", "one\n\ntwo\u{1b}[2J\u{2028}"),
        pair("key\u{7f}", ""),
    ]);
    program.file("m.safetensors", &header, 8);
    assert_snapshot!(program.shown(&["info", "m.safetensors"]), @r#"
    exit 0
    -- stdout
    m.safetensors  one file
    size        746 B
    tensors     1
    parameters  2
    dtypes      F32  ████████████████████████████████  8 B  100%  1 tensor
    largest     a  F32  [2]  8 B
    metadata    5 pairs, claimed by the file, not verified
                format     pt
                key\u007f  ""
                lines      one\n\ntwo\u001b[2J\u2028
                long       word word word word word word word word word wor… (500 B)
                ss_tags    {"10_cat": {"a": 1.50, "b": []}, "x": "{not \u202… (58 B)
    structure   valid, 1 note  (weigh check --notes says more)
    -- stderr
    "#);
    assert_snapshot!(program.shown(&["info", "--metadata", "m.safetensors"]), @r#"
    exit 0
    -- stdout
    m.safetensors  one file
    size        746 B
    tensors     1
    parameters  2
    dtypes      F32  ████████████████████████████████  8 B  100%  1 tensor
    largest     a  F32  [2]  8 B
    metadata    5 pairs, claimed by the file, not verified
      format  pt
      key\u007f  ""
      lines
        one

        two\u001b[2J\u2028
      long  word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word 
      ss_tags
        {
          "10_cat": {
            "a": 1.50,
            "b": []
          },
          "x": "{not \u202e json}"
        }
    structure   valid, 1 note  (weigh check --notes says more)
    -- stderr
    "#);
}

#[test]
fn large_metadata_does_not_flood() {
    let program = Program::new();
    let many: Vec<_> = (0..20_000).map(|number| pair(&format!("key_{number}"), "value")).collect();
    program.file("many.safetensors", &with_metadata(&many), 8);
    program.file("long.safetensors", &with_metadata(&[pair("k", &"v".repeat(5_000_000))]), 8);
    for name in ["many.safetensors", "long.safetensors"] {
        let shown = program.shown(&["info", name]);
        assert!(shown.lines().count() < 28, "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}

#[test]
fn metadata_that_all_files_have_is_shown_once() {
    let program = Program::new();
    for (number, title) in [(1, "x"), (2, "x"), (3, "y")] {
        let header = with_metadata(&[pair("format", "pt"), pair("title", title)]);
        let header = header.replace("\"a\"", &format!("\"{number}\""));
        program.file(format!("m-0000{number}-of-00003.safetensors"), &header, 8);
    }
    assert_snapshot!(program.shown(&["info", "."]), @"
    exit 0
    -- stdout
    .  3 files, numbered, no index
    size        369 B
    tensors     3
    parameters  6
    dtypes      F32  ████████████████████████████████  24 B  100%  3 tensors
    largest     1  F32  [2]  8 B
                2  F32  [2]  8 B
                3  F32  [2]  8 B
    metadata    3 pairs, claimed by the file, not verified
                format  pt
                title   x  (in 2 of 3 files)
                title   y  (in m-00003-of-00003.safetensors)
    structure   valid, 3 notes  (weigh check --notes says more)
    -- stderr
    ");
}

#[test]
fn many_pairs_of_one_key_do_not_take_the_square_of_the_time() {
    let program = Program::new();
    // The same pair, then one key with ever another value.
    let values: [fn(usize) -> usize; 2] = [|_| 1, |number| number];
    for value in values {
        let all: Vec<_> = (0..60_000).map(|it| format!(r#""":"{:05}""#, value(it))).collect();
        let header = format!(r#"{{"__metadata__":{{{}}}}}"#, all.join(","));
        program.file("same.safetensors", &header, 0);
        let shown = program.shown(&["info", "same.safetensors"]);
        assert!(shown.contains("metadata    60 000 pairs, claimed"), "{shown}");
    }
}

#[test]
fn the_document_has_the_numbers() {
    let report: Value =
        serde_json::from_str(&example(&["info", "--json", "quantized", "tiny"])).unwrap();
    assert_eq!(report["schema"], "weigh.info/1");
    let [quantized, tiny] = [0, 1].map(|number| &report["checkpoints"][number]);
    assert_snapshot!(quantized["parameters"].to_string(), @r#"{"buffers":0,"exact":true,"helpers":7600,"logical":62752,"stored":22432}"#);
    assert_snapshot!(quantized["traits"][0].to_string(), @r#"{"code":"quantized","evidence":["model.layers.0.mlp.down_proj.qweight","model.layers.0.mlp.gate_proj.qweight","model.layers.0.mlp.up_proj.qweight"],"text":"quantized, GPTQ [gptq]: 28 weights"}"#);
    assert_snapshot!(tiny["totals"].to_string(), @r#"{"bytes":126080,"elements":62752,"in_no_file":0,"missing_bytes":0,"tensors":39,"unknown":0}"#);
    assert_snapshot!(tiny["dtypes"].to_string(), @r#"[{"bytes":124928,"dtype":"BF16","elements":62464,"tensors":30,"unknown":0},{"bytes":1152,"dtype":"F32","elements":288,"tensors":9,"unknown":0}]"#);
    assert_snapshot!(tiny["largest"][0].to_string(), @r#"{"bytes":16384,"dtype":"BF16","name":"lm_head.weight","shape":[256,32]}"#);
    assert_snapshot!(tiny["index"].to_string(), @r#"{"tensors":39,"total_parameters":62752,"total_size":126080}"#);
    assert_snapshot!(tiny["metadata"][0].to_string(), @r#"{"file":"model-00003-of-00003.safetensors","key":"format","value":"pt"}"#);
}

#[test]
fn text_from_files_reaches_no_output_as_itself() {
    let program = Program::new();
    let header = with_metadata(&[pair("\u{202e}k\u{9b}", "v\u{1b}]0;t\u{7}")]);
    let header = header.replace("\"a\"", "\"a\u{202e}\u{7f}\\u001b\"");
    program.file("m.safetensors", &header, 8);
    for flags in [&["info"][..], &["info", "--json"], &["info", "--metadata"]] {
        let output = program.run(&[flags, &["m.safetensors"]].concat());
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let unsafe_to_print =
            |it: &char| *it != '\n' && weigh::format::text::is_unsafe_to_print(*it);
        assert_eq!(text.chars().find(unsafe_to_print), None, "{flags:?}: {text}");
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let program = Program::new();
    let header = with_metadata(&[pair("k", &"v".repeat(1_000_000))]);
    program.file("m.safetensors", &header, 8);
    let mut command = program.command(&["info", "--metadata", "m.safetensors"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
