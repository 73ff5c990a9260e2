//! `weigh ls`, run as a program.

mod program;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use program::{Program, repository};
use serde_json::Value;

/// A model of two shards, named in an index, whose blocks are not in order.
fn model() -> Program {
    let program = Program::new();
    program.file(
        "model-00001-of-00002.safetensors",
        concat!(
            r#"{"layers.10.w":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]},"#,
            r#""layers.2.w":{"dtype":"BF16","shape":[4,8],"data_offsets":[64,128]},"#,
            r#""layers.2.scale":{"dtype":"F32","shape":[],"data_offsets":[128,132]}}"#,
        ),
        132,
    );
    program.file(
        "model-00002-of-00002.safetensors",
        concat!(
            r#"{"embed":{"dtype":"BF16","shape":[32,16],"data_offsets":[0,1024]},"#,
            r#""empty":{"dtype":"I64","shape":[0,7],"data_offsets":[1024,1024]}}"#,
        ),
        1024,
    );
    let index = r#"{"weight_map":{
        "embed":"model-00002-of-00002.safetensors",
        "empty":"model-00002-of-00002.safetensors",
        "layers.10.w":"model-00001-of-00002.safetensors",
        "layers.2.w":"model-00001-of-00002.safetensors",
        "layers.2.scale":"model-00001-of-00002.safetensors"}}"#;
    std::fs::write(program.path("model.safetensors.index.json"), index).unwrap();
    program
}

/// Names that would do things to a terminal, and one that is longer than a line.
fn odd_names() -> Program {
    let program = Program::new();
    let long = "long.".repeat(30);
    let header = format!(
        "{{{},{},{},{},{}}}",
        r#""\u001b[31mred\u001b[0m\r\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#,
        "\"a\u{202e}b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}",
        r#""a, \"quoted\" \\ name":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}"#,
        "\"ключ\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}",
        format_args!(r#""{long}":{{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}"#),
    );
    program.file("odd.safetensors", &header, 5);
    program
}

/// A file that ends early, of which some entries cannot be read.
fn damaged() -> Program {
    let program = Program::new();
    program.file(
        "damaged.safetensors",
        concat!(
            r#"{"whole":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"#,
            r#""cut":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"#,
            r#""dtype":{"dtype":"I4","shape":[4],"data_offsets":[8,10]},"#,
            r#""shape":{"dtype":"U8","shape":"4","data_offsets":[10,14]},"#,
            r#""offsets":{"dtype":"U8","shape":[4]},"#,
            r#""nothing":{}}"#,
        ),
        5,
    );
    program
}

#[test]
fn a_line_a_tensor_in_natural_order() {
    assert_snapshot!(model().shown(&["ls", "."]), @"
    exit 0
    -- stdout
    embed           BF16  [32, 16]  1.00 KiB
    empty           I64   [0, 7]         0 B
    layers.2.scale  F32   []             4 B
    layers.2.w      BF16  [4, 8]        64 B
    layers.10.w     BF16  [4, 8]        64 B
    -- stderr
    ");
}

#[test]
fn the_long_form_says_where_the_bytes_are() {
    assert_snapshot!(model().shown(&["ls", "-l", "--bytes", "."]), @"
    exit 0
    -- stdout
    embed           BF16  [32, 16]  1024     0..1024   139..1163  model-00002-of-00002.safetensors
    empty           I64   [0, 7]       0  1024..1024  1163..1163  model-00002-of-00002.safetensors
    layers.2.scale  F32   []           4   128..132    341..345   model-00001-of-00002.safetensors
    layers.2.w      BF16  [4, 8]      64    64..128    277..341   model-00001-of-00002.safetensors
    layers.10.w     BF16  [4, 8]      64     0..64     213..277   model-00001-of-00002.safetensors
    -- stderr
    ");
}

#[test]
fn every_order_and_its_reverse() {
    let program = model();
    let names = |arguments: &[&str]| {
        let output = program.run(&[&["ls", "."], arguments].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    for (arguments, want) in [
        (&[][..], "embed empty layers.2.scale layers.2.w layers.10.w"),
        (&["--sort=name", "--reverse"], "layers.10.w layers.2.w layers.2.scale empty embed"),
        (&["--sort=size"], "embed layers.2.w layers.10.w layers.2.scale empty"),
        (&["--sort=size", "-r"], "empty layers.2.scale layers.10.w layers.2.w embed"),
        (&["--sort=offset"], "layers.10.w layers.2.w layers.2.scale embed empty"),
        (&["--sort=dtype"], "embed layers.2.w layers.10.w layers.2.scale empty"),
        (&["--sort=dtype", "--limit=2"], "embed layers.2.w"),
        (&["-n", "0"], ""),
        (&["-n", "99", "-x", "l*"], "embed empty"),
    ] {
        assert_eq!(names(arguments), want, "{arguments:?}");
    }
}

#[test]
fn selectors_and_flags_narrow_each_other() {
    let program = model();
    for (arguments, want) in [
        (&[".:layers.*"][..], 3),
        (&[".:layers.*", "--tensors", "*.w"], 2),
        (&[".", "--tensors", "*.w", "--include", "embed"], 3),
        (&[".:layers.*", "--exclude", "*.w"], 1),
        (&[".", "--dtype", "f32"], 1),
        (&[".", "--dtype", "F32,i64"], 2),
        (&["model.safetensors.index.json:embed"], 1),
        (&["model-*.safetensors:*e*"], 5),
        (&["model-00001-of-00002.safetensors:*.w"], 2),
    ] {
        let output = program.run(&[&["ls", "--jsonl"], arguments].concat());
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shown.lines().count(), want, "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn what_matches_nothing_is_a_finding_with_help() {
    let program = model();
    let shown = |arguments: &[&str]| program.shown(&[&["ls"], arguments].concat());
    assert_snapshot!(shown(&[".:layers.2.q"]), @"
    exit 1
    -- stdout
    -- stderr
    error: .: no tensor name matches `layers.2.q`
      help: The nearest names are `layers.2.w`, `layers.2.scale` and `layers.10.w`.
    ");
    assert_snapshot!(shown(&[".:layers"]), @"
    exit 1
    -- stdout
    -- stderr
    error: .: no tensor name matches `layers`
      help: A selector matches whole names; 3 names contain it: try `*layers*`.
    ");
    assert_snapshot!(shown(&[".", "-i", "*.w", "-i", "*.zzz"]), @"
    exit 1
    -- stdout
    layers.2.w   BF16  [4, 8]      64 B
    layers.10.w  BF16  [4, 8]      64 B
    -- stderr
    error: .: no tensor name matches `*.zzz`
    ");
    assert_snapshot!(shown(&[".", "--dtype", "F16,F64"]), @"
    exit 1
    -- stdout
    -- stderr
    error: .: no tensor has dtype F16, F64
      help: The dtypes there are: BF16, F32, I64.
    ");
    assert_snapshot!(shown(&[".:*.w", "--tensors", "embed"]), @"
    exit 1
    -- stdout
    -- stderr
    error: .: no tensor is left by all selectors together
    ");
}

#[test]
fn many_files_that_cannot_be_read_are_counted() {
    let program = Program::new();
    for number in 1..=9 {
        // A folder in a file's place.
        let name = format!("m-0000{number}-of-00009.safetensors");
        std::fs::create_dir(program.path(name)).unwrap();
    }
    let map = (1..=9).map(|number| format!(r#""{number}":"m-0000{number}-of-00009.safetensors""#));
    let map: Vec<String> = map.collect();
    let index = format!(r#"{{"weight_map":{{{}}}}}"#, map.join(","));
    std::fs::write(program.path("m.safetensors.index.json"), index).unwrap();
    assert_snapshot!(program.shown(&["tree", "m.safetensors.index.json"]), @"
    exit 2
    -- stdout
    m.safetensors.index.json    0+?       0 B
    └─ [1..9] ×9    0+?       0 B  ?  ? ×9
    -- stderr
    note: m.safetensors.index.json: 9 tensors have missing bytes; `weigh ls` marks them
    error: m-00001-of-00009.safetensors: is a folder
      help: Give a file in it.
    error: m-00002-of-00009.safetensors: is a folder
      help: Give a file in it.
    error: m-00003-of-00009.safetensors: is a folder
      help: Give a file in it.
    error: m-00004-of-00009.safetensors: is a folder
      help: Give a file in it.
    error: m-00005-of-00009.safetensors: is a folder
      help: Give a file in it.
    note: m.safetensors.index.json: 4 more could not be read
    ");
    let output = program.run(&["tree", "--json", "m.safetensors.index.json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["errors"].as_array().unwrap().len(), 9, "a document has them all");
}

#[cfg(unix)]
#[test]
fn a_folder_that_a_glob_cannot_look_into_is_a_failure() {
    use std::os::unix::fs::PermissionsExt;
    let program = model();
    let closed = program.path("closed");
    std::fs::create_dir(&closed).unwrap();
    let set = |mode| std::fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
    set(0o000);
    // Whoever may read everything has nothing to test here.
    if std::fs::read_dir(&closed).is_err() {
        let shown = program.shown(&["ls", "closed/*.safetensors"]);
        assert_snapshot!(shown, @"
        exit 2
        -- stdout
        -- stderr
        error: closed: permission denied
          help: Check the mode of the file and of its folder: some writers leave a file readable by its owner only.
        ");
    }
    set(0o755);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let program = model();
    let shown = |arguments: &[&str]| program.shown(&[&["ls"], arguments].concat());
    assert_snapshot!(shown(&[".:*["]), @r#"
    exit 2
    -- stdout
    -- stderr
    error: .: glob "*[" at byte 1: [ without a closing ]
      help: Put a backslash before a character that is meant as itself.
    "#);
    assert_snapshot!(shown(&[".", "--dtype", "bfloat16"]), @"
    exit 2
    -- stdout
    -- stderr
    error: invalid value 'bfloat16' for '--dtype <DTYPE>': the format calls it BF16

    For more information, try '--help'.
    ");
    assert_snapshot!(shown(&[".", "--dtype", "I4"]), @"
    exit 2
    -- stdout
    -- stderr
    error: invalid value 'I4' for '--dtype <DTYPE>': the format has BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64

    For more information, try '--help'.
    ");
    assert_snapshot!(shown(&[".", "--json", "--csv"]), @"
    exit 2
    -- stdout
    -- stderr
    error: the argument '--json' cannot be used with '--csv'

    Usage: weigh ls --json <PATH[:GLOB]>...

    For more information, try '--help'.
    ");
    assert_snapshot!(shown(&[".", "--json", "--long"]), @"
    exit 2
    -- stdout
    -- stderr
    error: the argument '--json' cannot be used with '--long'

    Usage: weigh ls --json <PATH[:GLOB]>...

    For more information, try '--help'.
    ");
}

#[test]
fn several_checkpoints_have_a_heading_each_and_failures_do_not_end_the_run() {
    let program = Program::new();
    let header = r#"{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    for name in ["unet/model.safetensors", "vae/model.safetensors"] {
        program.file(name, header, 1);
    }
    assert_snapshot!(program.shown(&["ls", "absent", "."]), @"
    exit 2
    -- stdout
    ./unet:
    w  U8  [1]       1 B

    ./vae:
    w  U8  [1]       1 B
    -- stderr
    error: absent: no such file or folder
      help: Check the spelling of the path.
    ");
    assert_snapshot!(program.shown(&["ls", "--csv", "absent", "vae", "unet:w"]), @"
    exit 2
    -- stdout
    name,dtype,shape,bytes,begin,end,file,path
    w,U8,1,1,0,1,model.safetensors,vae
    w,U8,1,1,0,1,model.safetensors,unet
    -- stderr
    error: absent: no such file or folder
      help: Check the spelling of the path.
    ");
    assert_snapshot!(program.shown(&["ls", "--json", "absent", "vae"]), @r#"
    exit 2
    -- stdout
    {"schema":"weigh.ls/1","checkpoints":[
    {"path":"vae","kind":"file","shards":[{"file":"model.safetensors","size":62,"tensors":1}],"total_tensors":1,"total_bytes":1,"tensors":[
    {"name":"w","dtype":"U8","shape":[1],"bytes":1,"data_offsets":[0,1],"file":"model.safetensors"}],"findings":[]}
    ],"errors":[
    {"path":"absent","code":"io-missing","message":"absent: no such file or folder","help":"Check the spelling of the path."}]}
    -- stderr
    error: absent: no such file or folder
      help: Check the spelling of the path.
    "#);
}

#[test]
fn text_from_a_file_is_escaped_and_one_long_name_pads_no_line() {
    let program = odd_names();
    assert_snapshot!(program.shown(&["ls", "."]), @r#"
    exit 0
    -- stdout
    \u001b[31mred\u001b[0m\r\n  U8  [1]       1 B
    a, "quoted" \ name          U8  [1]       1 B
    a\u202eb                    U8  [1]       1 B
    long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.  U8  [1]       1 B
    ключ                        U8  [1]       1 B
    -- stderr
    "#);
    assert_snapshot!(program.shown(&["ls", "--csv", "."]), @r#"
    exit 0
    -- stdout
    name,dtype,shape,bytes,begin,end,file
    \u001b[31mred\u001b[0m\r\n,U8,1,1,0,1,odd.safetensors
    "a, ""quoted"" \ name",U8,1,1,2,3,odd.safetensors
    a\u202eb,U8,1,1,1,2,odd.safetensors
    long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.,U8,1,1,4,5,odd.safetensors
    ключ,U8,1,1,3,4,odd.safetensors
    -- stderr
    "#);
    assert_snapshot!(program.shown(&["ls", "--jsonl", "."]), @r#"
    exit 0
    -- stdout
    {"path":".","name":"\u001b[31mred\u001b[0m\r\n","dtype":"U8","shape":[1],"bytes":1,"data_offsets":[0,1],"file":"odd.safetensors"}
    {"path":".","name":"a, \"quoted\" \\ name","dtype":"U8","shape":[1],"bytes":1,"data_offsets":[2,3],"file":"odd.safetensors"}
    {"path":".","name":"a\u202eb","dtype":"U8","shape":[1],"bytes":1,"data_offsets":[1,2],"file":"odd.safetensors"}
    {"path":".","name":"long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.long.","dtype":"U8","shape":[1],"bytes":1,"data_offsets":[4,5],"file":"odd.safetensors"}
    {"path":".","name":"ключ","dtype":"U8","shape":[1],"bytes":1,"data_offsets":[3,4],"file":"odd.safetensors"}
    -- stderr
    "#);
}

#[test]
fn names_in_json_read_back_as_they_are() {
    let program = odd_names();
    let output = program.run(&["ls", "--json", "."]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    let document: Value = serde_json::from_str(&text).unwrap();
    let names = document["checkpoints"][0]["tensors"].as_array().unwrap();
    let names: Vec<&str> = names.iter().map(|tensor| tensor["name"].as_str().unwrap()).collect();
    for name in ["\u{1b}[31mred\u{1b}[0m\r\n", "a\u{202e}b", "a, \"quoted\" \\ name", "ключ"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn damaged_tensors_are_marked() {
    let program = damaged();
    assert_snapshot!(program.shown(&["ls", "."]), @"
    exit 1
    -- stdout
    cut      U8  [4]       4 B  ! missing bytes
    dtype    ?   [4]       2 B  ! unknown dtype, missing bytes
    nothing  ?   ?           ?  ! unknown dtype, unknown shape, unknown offsets
    offsets  U8  [4]         ?  ! unknown offsets
    shape    U8  ?         4 B  ! unknown shape, missing bytes
    whole    U8  [4]       4 B
    -- stderr
    error: ./damaged.safetensors: tensor `dtype` has the unknown dtype `I4` [dtype-unknown]
      help: No reader knows its size: have the writer use a dtype of the format.
    error: ./damaged.safetensors: shape of tensor `shape` has a string, not an array of integers [entry-field-type]
      help: The entry cannot be read as it is: have the writer follow the format.
    error: ./damaged.safetensors: tensor `offsets` has no data_offsets [entry-field-missing]
      help: The entry cannot be read without it: have the writer give all three.
    error: ./damaged.safetensors: tensor `nothing` has no dtype [entry-field-missing]
    error: ./damaged.safetensors: tensor `nothing` has no shape [entry-field-missing]
    error: ./damaged.safetensors: tensor `nothing` has no data_offsets [entry-field-missing]
    error: ./damaged.safetensors: missing at the end: 9 bytes; the tensors need 14, the file has 5, and 1 of 6 tensors are complete [data-truncated]
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    assert_snapshot!(program.shown(&["ls", "--csv", "."]), @"
    exit 1
    -- stdout
    name,dtype,shape,bytes,begin,end,file
    cut,U8,4,4,4,8,damaged.safetensors
    dtype,?,4,2,8,10,damaged.safetensors
    nothing,?,?,,,,damaged.safetensors
    offsets,U8,4,,,,damaged.safetensors
    shape,U8,?,4,10,14,damaged.safetensors
    whole,U8,4,4,0,4,damaged.safetensors
    -- stderr
    error: ./damaged.safetensors: tensor `dtype` has the unknown dtype `I4` [dtype-unknown]
      help: No reader knows its size: have the writer use a dtype of the format.
    error: ./damaged.safetensors: shape of tensor `shape` has a string, not an array of integers [entry-field-type]
      help: The entry cannot be read as it is: have the writer follow the format.
    error: ./damaged.safetensors: tensor `offsets` has no data_offsets [entry-field-missing]
      help: The entry cannot be read without it: have the writer give all three.
    error: ./damaged.safetensors: tensor `nothing` has no dtype [entry-field-missing]
    error: ./damaged.safetensors: tensor `nothing` has no shape [entry-field-missing]
    error: ./damaged.safetensors: tensor `nothing` has no data_offsets [entry-field-missing]
    error: ./damaged.safetensors: missing at the end: 9 bytes; the tensors need 14, the file has 5, and 1 of 6 tensors are complete [data-truncated]
      help: The download or the write was interrupted: resume it, or get the file again.
    ");
    assert_snapshot!(String::from_utf8(program.run(&["ls", "-l", "."]).stdout).unwrap(), @"
    cut      U8  [4]       4 B   4..8   288..292  damaged.safetensors  ! missing bytes
    dtype    ?   [4]       2 B   8..10  292..294  damaged.safetensors  ! unknown dtype, missing bytes
    nothing  ?   ?           ?   ?        ?       damaged.safetensors  ! unknown dtype, unknown shape, unknown offsets
    offsets  U8  [4]         ?   ?        ?       damaged.safetensors  ! unknown offsets
    shape    U8  ?         4 B  10..14  294..298  damaged.safetensors  ! unknown shape, missing bytes
    whole    U8  [4]       4 B   0..4   284..288  damaged.safetensors
    ");
    assert_snapshot!(String::from_utf8(program.run(&["ls", "--jsonl", "."]).stdout).unwrap(), @r#"
    {"path":".","name":"cut","dtype":"U8","shape":[4],"bytes":4,"data_offsets":[4,8],"file":"damaged.safetensors","present":false}
    {"path":".","name":"dtype","dtype":null,"shape":[4],"bytes":2,"data_offsets":[8,10],"file":"damaged.safetensors","present":false}
    {"path":".","name":"nothing","dtype":null,"shape":null,"bytes":null,"data_offsets":null,"file":"damaged.safetensors"}
    {"path":".","name":"offsets","dtype":"U8","shape":[4],"bytes":null,"data_offsets":null,"file":"damaged.safetensors"}
    {"path":".","name":"shape","dtype":"U8","shape":null,"bytes":4,"data_offsets":[10,14],"file":"damaged.safetensors","present":false}
    {"path":".","name":"whole","dtype":"U8","shape":[4],"bytes":4,"data_offsets":[0,4],"file":"damaged.safetensors"}
    "#);
}

#[test]
fn tensors_of_a_missing_shard_are_listed_as_the_index_names_them() {
    let program = model();
    std::fs::remove_file(program.path("model-00002-of-00002.safetensors")).unwrap();
    assert_snapshot!(program.shown(&["ls", "-l", "."]), @"
    exit 1
    -- stdout
    embed           ?     ?              ?    ?         ?       model-00002-of-00002.safetensors  ! no file
    empty           ?     ?              ?    ?         ?       model-00002-of-00002.safetensors  ! no file
    layers.2.scale  F32   []           4 B  128..132  341..345  model-00001-of-00002.safetensors
    layers.2.w      BF16  [4, 8]      64 B   64..128  277..341  model-00001-of-00002.safetensors
    layers.10.w     BF16  [4, 8]      64 B    0..64   213..277  model-00001-of-00002.safetensors
    -- stderr
    error: ./model.safetensors.index.json: the file `model-00002-of-00002.safetensors` is not there [index-shard-missing]
      help: Fetch the missing shard.
    ");
}

#[test]
fn a_file_that_is_something_else_is_a_finding() {
    let program = Program::new();
    std::fs::write(program.path("model.safetensors"), "<!DOCTYPE html><html>").unwrap();
    assert_snapshot!(program.shown(&["ls", "model.safetensors"]), @"
    exit 1
    -- stdout
    -- stderr
    error: model.safetensors: this is not a safetensors file but a web page saved under this name [not-safetensors]
      help: The server answered with a page, often a login or an error: download again, signed in.
    ");
}

#[test]
fn colour_is_only_around_cells() {
    let shown = damaged().shown(&["ls", "--color=always", "-l", "."]);
    assert_snapshot!(shown.replace('\u{1b}', "ESC"), @"
    exit 1
    -- stdout
    cut      ESC[36mU8ESC[0m  ESC[33m[4]ESC[0m       4 B  ESC[2m 4..8   288..292  damaged.safetensorsESC[0m  ESC[31m! missing bytesESC[0m
    dtype    ESC[36m?ESC[0m   ESC[33m[4]ESC[0m       2 B  ESC[2m 8..10  292..294  damaged.safetensorsESC[0m  ESC[31m! unknown dtype, missing bytesESC[0m
    nothing  ESC[36m?ESC[0m   ESC[33m?ESC[0m           ?  ESC[2m ?        ?       damaged.safetensorsESC[0m  ESC[31m! unknown dtype, unknown shape, unknown offsetsESC[0m
    offsets  ESC[36mU8ESC[0m  ESC[33m[4]ESC[0m         ?  ESC[2m ?        ?       damaged.safetensorsESC[0m  ESC[31m! unknown offsetsESC[0m
    shape    ESC[36mU8ESC[0m  ESC[33m?ESC[0m         4 B  ESC[2m10..14  294..298  damaged.safetensorsESC[0m  ESC[31m! unknown shape, missing bytesESC[0m
    whole    ESC[36mU8ESC[0m  ESC[33m[4]ESC[0m       4 B  ESC[2m 0..4   284..288  damaged.safetensorsESC[0m
    -- stderr
    ESC[31merror:ESC[0m ./damaged.safetensors: tensor `dtype` has the unknown dtype `I4` [dtype-unknown]
    ESC[36m  help:ESC[0m No reader knows its size: have the writer use a dtype of the format.
    ESC[31merror:ESC[0m ./damaged.safetensors: shape of tensor `shape` has a string, not an array of integers [entry-field-type]
    ESC[36m  help:ESC[0m The entry cannot be read as it is: have the writer follow the format.
    ESC[31merror:ESC[0m ./damaged.safetensors: tensor `offsets` has no data_offsets [entry-field-missing]
    ESC[36m  help:ESC[0m The entry cannot be read without it: have the writer give all three.
    ESC[31merror:ESC[0m ./damaged.safetensors: tensor `nothing` has no dtype [entry-field-missing]
    ESC[31merror:ESC[0m ./damaged.safetensors: tensor `nothing` has no shape [entry-field-missing]
    ESC[31merror:ESC[0m ./damaged.safetensors: tensor `nothing` has no data_offsets [entry-field-missing]
    ESC[31merror:ESC[0m ./damaged.safetensors: missing at the end: 9 bytes; the tensors need 14, the file has 5, and 1 of 6 tensors are complete [data-truncated]
    ESC[36m  help:ESC[0m The download or the write was interrupted: resume it, or get the file again.
    ");
}

#[test]
fn csv_and_json_lines_have_the_same_tensors_as_the_document() {
    let cases = repository("conformance/format/cases");
    let run = |format: &str| {
        let program = Program::new();
        let output = program.run(&["ls".as_ref(), format.as_ref(), cases.as_os_str()]);
        String::from_utf8(output.stdout).unwrap()
    };
    let document: Value = serde_json::from_str(&run("--json")).unwrap();
    let tensors = document["checkpoints"].as_array().unwrap().iter().flat_map(|checkpoint| {
        let tensors = checkpoint["tensors"].as_array().unwrap().iter().cloned();
        tensors.map(|mut tensor| {
            tensor["path"] = checkpoint["path"].clone();
            tensor
        })
    });
    let tensors: Vec<Value> = tensors.collect();
    let lines = run("--jsonl");
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(tensors.len() > 500);
    assert_eq!(lines, tensors);
    assert_eq!(run("--csv").matches("\r\n").count(), tensors.len() + 1);
}

/// 20 000 tensors, `w.0` to `w.19999`, in the order of their bytes.
fn many() -> Program {
    let program = Program::new();
    let entry = |number: usize| {
        let end = number + 1;
        format!(r#""w.{number}":{{"dtype":"U8","shape":[1],"data_offsets":[{number},{end}]}}"#)
    };
    let mut entries: Vec<String> = (0..20_000).map(entry).collect();
    entries.sort();
    program.file("many.safetensors", &format!("{{{}}}", entries.join(",")), 20_000);
    program
}

#[test]
fn many_lines_are_in_order_too() {
    let program = many();
    let want: Vec<String> = (0..20_000).map(|number| format!("w.{number}")).collect();
    for (format, after_name) in [("--color=never", ' '), ("--csv", ',')] {
        let output = program.run(&["ls", format, "many.safetensors"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split(after_name).next());
        let names: Vec<&str> = names.filter(|name| name.starts_with("w.")).collect();
        assert!(names == want, "{format}");
    }
    let output = program.run(&["ls", "--json", "many.safetensors"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tensors = document["checkpoints"][0]["tensors"].as_array().unwrap();
    let names: Vec<&str> = tensors.iter().filter_map(|tensor| tensor["name"].as_str()).collect();
    assert!(names == want);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let program = many();
    for format in [&[][..], &["--json"], &["--jsonl"], &["--csv"]] {
        let arguments = [&["ls", "many.safetensors"], format].concat();
        let mut command = program.command(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!line.is_empty());
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{format:?}");
    }
}
