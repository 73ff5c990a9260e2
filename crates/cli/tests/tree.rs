//! `weigh tree`, run as a program.

mod program;

use insta::assert_snapshot;
use program::{Program, repository};

#[test]
fn repeated_blocks_are_one_line() {
    let program = Program::new();
    let shown = |name: &str, flags: &[&str]| {
        let mut command = program.command(&[&["tree", name], flags].concat());
        program::shown(&command.current_dir(repository("examples")).output().unwrap())
    };
    assert_snapshot!(shown("tiny", &[]), @"
    exit 0
    -- stdout
    tiny                                      62.8K   123 KiB
    ├─ lm_head.weight                         8.19K  16.0 KiB  BF16  [256, 32]
    └─ model                                  54.6K   107 KiB
       ├─ embed_tokens.weight                 8.19K  16.0 KiB  BF16  [256, 32]
       ├─ layers.[0..3] ×4                    46.3K  91.0 KiB
       │  ├─ input_layernorm.weight             128     512 B  F32   [32] ×4
       │  ├─ mlp                              33.8K  66.0 KiB
       │  │  ├─ down_proj.weight              11.3K  22.0 KiB  BF16  [32, 88] ×4
       │  │  ├─ gate_proj.weight              11.3K  22.0 KiB  BF16  [88, 32] ×4
       │  │  └─ up_proj.weight                11.3K  22.0 KiB  BF16  [88, 32] ×4
       │  ├─ post_attention_layernorm.weight    128     512 B  F32   [32] ×4
       │  └─ self_attn                        12.3K  24.0 KiB
       │     ├─ k_proj.weight                 2.05K  4.00 KiB  BF16  [16, 32] ×4
       │     ├─ o_proj.weight                 4.10K  8.00 KiB  BF16  [32, 32] ×4
       │     ├─ q_proj.weight                 4.10K  8.00 KiB  BF16  [32, 32] ×4
       │     └─ v_proj.weight                 2.05K  4.00 KiB  BF16  [16, 32] ×4
       └─ norm.weight                            32     128 B  F32   [32]
    -- stderr
    ");
    assert_snapshot!(shown("lora", &["--ascii"]), @"
    exit 0
    -- stdout
    lora                                                  1.79K  7.00 KiB
    `- base_model.model.model.layers.[0..3].self_attn x4  1.79K  7.00 KiB
       |- q_proj                                          1.02K  4.00 KiB
       |  |- lora_A.weight                                  512  2.00 KiB  F32  [4, 32] x4
       |  `- lora_B.weight                                  512  2.00 KiB  F32  [32, 4] x4
       `- v_proj                                            768  3.00 KiB
          |- lora_A.weight                                  512  2.00 KiB  F32  [4, 32] x4
          `- lora_B.weight                                  256  1.00 KiB  F32  [16, 4] x4
    -- stderr
    ");
    assert_snapshot!(shown("quantized", &["--depth", "3"]), @"
    exit 0
    -- stdout
    quantized                                 30.0K  73.5 KiB
    ├─ lm_head.weight                         8.19K  16.0 KiB  F16  [256, 32]
    └─ model                                  21.8K  57.5 KiB
       ├─ embed_tokens.weight                 8.19K  16.0 KiB  F16  [256, 32]
       ├─ layers.[0..3] ×4                    13.6K  41.4 KiB
       │  ├─ input_layernorm.weight             128     256 B  F16  [32] ×4
       │  ├─ mlp                              9.58K  29.2 KiB
       │  ├─ post_attention_layernorm.weight    128     256 B  F16  [32] ×4
       │  └─ self_attn                        3.78K  11.8 KiB
       └─ norm.weight                            32      64 B  F16  [32]
    -- stderr
    ");
    assert_snapshot!(shown("tiny", &["--depth", "0"]), @"
    exit 0
    -- stdout
    tiny  62.8K   123 KiB
    -- stderr
    ");
    assert_snapshot!(shown("tiny", &["--tensors", "*norm*"]), @"
    exit 0
    -- stdout
    tiny                                        288  1.13 KiB
    └─ model                                    288  1.13 KiB
       ├─ layers.[0..3] ×4                      256  1.00 KiB
       │  ├─ input_layernorm.weight             128     512 B  F32  [32] ×4
       │  └─ post_attention_layernorm.weight    128     512 B  F32  [32] ×4
       └─ norm.weight                            32     128 B  F32  [32]
    -- stderr
    ");
    assert_snapshot!(shown("tiny", &["--json", "--depth", "2"]), @r#"
    exit 0
    -- stdout
    {"schema":"weigh.tree/1","checkpoints":[
    {"path":"tiny","kind":"indexed","shards":[{"file":"model-00003-of-00003.safetensors","size":41136,"tensors":12},{"file":"model-00001-of-00003.safetensors","size":44216,"tensors":13},{"file":"model-00002-of-00003.safetensors","size":44712,"tensors":14}],"total_tensors":39,"total_elements":62752,"total_bytes":126080,"rows":[
    {"depth":0,"label":"lm_head.weight","path":"lm_head.weight","kind":"tensor","count":1,"copies":1,"tensors":1,"elements":8192,"bytes":16384,"dtypes":["BF16"],"shape":[256,32]},
    {"depth":0,"label":"model","path":"model","kind":"module","count":1,"copies":1,"tensors":38,"elements":54560,"bytes":109696,"dtypes":["BF16","F32"]},
    {"depth":1,"label":"embed_tokens.weight","path":"model.embed_tokens.weight","kind":"tensor","count":1,"copies":1,"tensors":1,"elements":8192,"bytes":16384,"dtypes":["BF16"],"shape":[256,32]},
    {"depth":1,"label":"layers.[0..3]","path":"model.layers.0","kind":"module","count":4,"copies":4,"indices":[[[0,3]]],"tensors":36,"elements":46336,"bytes":93184,"dtypes":["BF16","F32"]},
    {"depth":1,"label":"norm.weight","path":"model.norm.weight","kind":"tensor","count":1,"copies":1,"tensors":1,"elements":32,"bytes":128,"dtypes":["F32"],"shape":[32]}],"findings":[]}
    ],"errors":[]}
    -- stderr
    "#);
    assert_snapshot!(shown("lora", &["--color=always", "-d1"]).replace('\u{1b}', "ESC"), @"
    exit 0
    -- stdout
    ESC[1mloraESC[0m                                                  1.79K  7.00 KiB
    ESC[2m└─ ESC[0mbase_model.model.model.layers.[0..3].self_attn ×4  1.79K  7.00 KiB
    -- stderr
    ");
}

#[test]
fn names_are_escaped_and_long_ones_pad_no_line() {
    let program = Program::new();
    let long = "long_".repeat(30);
    let header = format!(
        "{{{},{},{},{}}}",
        r#""m.\u001b[31mred\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#,
        "\"m.a\u{202e}b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}",
        format_args!(r#""m.{long}.x":{{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#),
        r#""":{"dtype":"U8","shape":[],"data_offsets":[3,4]}"#,
    );
    program.file("odd.safetensors", &header, 4);
    assert_snapshot!(program.shown(&["tree", "."]), @r"
    exit 0
    -- stdout
    .                          4       4 B
    ├─                         1       1 B  U8  []
    └─ m                       3       3 B
       ├─ \u001b[31mred\n      1       1 B  U8  [1]
       ├─ a\u202eb             1       1 B  U8  [1]
       └─ long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_long_.x      1       1 B  U8  [1]
    -- stderr
    ");
}

#[test]
fn a_damaged_file_has_a_tree_of_what_could_be_read() {
    let program = Program::new();
    program.file(
        "damaged.safetensors",
        concat!(
            r#"{"a.whole":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"#,
            r#""a.cut":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"#,
            r#""b":{"dtype":"I4","shape":"4","data_offsets":[8,10]}}"#,
        ),
        5,
    );
    assert_snapshot!(program.shown(&["tree", "."]), @"
    exit 1
    -- stdout
    .              8+?      10 B
    ├─ a             8       8 B
    │  ├─ cut        4       4 B  U8  [4]
    │  └─ whole      4       4 B  U8  [4]
    └─ b           0+?       2 B  ?   ?
    -- stderr
    note: .: 2 tensors have missing bytes; `weigh ls` marks them
    error: ./damaged.safetensors: tensor `b` has the unknown dtype `I4` [dtype-unknown]
      help: No reader knows its size: have the writer use a dtype of the format.
    error: ./damaged.safetensors: shape of tensor `b` has a string, not an array of integers [entry-field-type]
      help: The entry cannot be read as it is: have the writer follow the format.
    error: ./damaged.safetensors: missing at the end: 5 bytes; the tensors need 10, the file has 5, and 1 of 3 tensors are complete [data-truncated]
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
}

#[test]
fn several_checkpoints_are_apart_and_no_match_is_a_finding() {
    let program = Program::new();
    let header = r#"{"m.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    for name in ["unet/model.safetensors", "vae/model.safetensors"] {
        program.file(name, header, 1);
    }
    assert_snapshot!(program.shown(&["tree", ".", "absent"]), @"
    exit 2
    -- stdout
    ./unet      1       1 B
    └─ m.w      1       1 B  U8  [1]

    ./vae       1       1 B
    └─ m.w      1       1 B  U8  [1]
    -- stderr
    error: absent: no such file or folder
      help: Check the spelling of the path.
    ");
    assert_snapshot!(program.shown(&["tree", "vae:m"]), @"
    exit 1
    -- stdout
    -- stderr
    error: vae: no tensor name matches `m`
      help: A selector matches whole names; 1 name contains it: try `*m*`.
    ");
}
