//! Runs pickles of files and says what they would do: the verdict, the names, the calls, the findings.
//!
//! With `--time`, only how long it took.

use std::time::Instant;
use std::{env, fs, process};

use weigh_pickle::{Limits, run_all};

fn main() {
    let mut timed = false;
    let mut failed = false;
    for argument in env::args().skip(1) {
        if argument == "--time" {
            timed = true;
            continue;
        }
        match fs::read(&argument) {
            Ok(bytes) => show(&argument, &bytes, timed),
            Err(error) => {
                eprintln!("{argument}: {error}");
                failed = true;
            }
        }
    }
    process::exit(i32::from(failed));
}

fn show(path: &str, bytes: &[u8], timed: bool) {
    let start = Instant::now();
    let programs = run_all(bytes, &Limits::default());
    let elapsed = start.elapsed();
    for program in &programs {
        println!(
            "{path}: {} at byte {}, {} bytes, {} opcodes, {} nodes, {elapsed:?}",
            program.verdict(),
            program.start,
            program.len,
            program.opcodes,
            program.graph.len(),
        );
        if timed {
            continue;
        }
        for global in &program.globals {
            let (module, name) = program.graph.global(global.node).unwrap_or_default();
            let known = program.graph.known(global.node);
            println!("  {:>8} {} {module}.{name} {known:?}", global.offset, global.opcode.name());
        }
        for call in &program.foreign {
            println!("  call of {:?}", program.graph.global(call.callee));
        }
        for nested in &program.nested {
            println!("  nested: {nested:?}");
        }
        for finding in program.findings.list() {
            println!("  {finding}");
        }
        if let Some(error) = &program.error {
            println!("  {error}");
        }
    }
}
