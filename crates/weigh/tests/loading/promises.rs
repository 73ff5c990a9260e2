//! What loading promises beside the bytes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::made::{Made, Random};
use weigh::format::slice::Index;
use weigh::inventory::select::Selection;
use weigh::io::Cancel;
use weigh::io::policy::ReadOptions;
use weigh::{Checkpoint, Error, LoadOptions, Order, StreamOptions, Want};

fn made(seed: u64) -> Made {
    Made::large(&mut Random::new(seed))
}

#[test]
fn the_parts_of_eight_ranks_are_the_whole_and_balanced() {
    let made = made(1);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let tensors = checkpoint.tensors();
    for dimension in 0..4 {
        let ranks: Vec<Vec<Want<'_>>> = (0..8)
            .map(|rank| tensors.iter().filter_map(|it| it.part(dimension, rank, 8)).collect())
            .collect();
        let plans = checkpoint.plan_ranks(&ranks).unwrap();
        let loads: Vec<_> =
            plans.plans().iter().map(|plan| plan.load(&LoadOptions::default()).unwrap()).collect();
        let whole: u64 = tensors.iter().map(|it| it.span.end - it.span.start).sum();
        let bytes: u64 = plans.bytes().iter().sum();
        if dimension == 3 {
            // There is none: every rank has all.
            assert_eq!(bytes, 8 * whole);
            continue;
        }
        assert_eq!(bytes, whole);
        assert!(dimension == 1 || plans.balance() > 0.98, "{}", plans.balance());
        for load in &loads {
            // Rows lie together; columns cost no more than all that is between them.
            let read = load.report().read.bytes_read;
            assert!(dimension > 0 || read == load.report().read.bytes_wanted);
            assert!(read <= whole);
        }
        for tensor in &made.tensors {
            let parts: Vec<_> = loads.iter().map(|load| load.get(&tensor.name).unwrap()).collect();
            let along: u64 = parts.iter().map(|part| part.shape()[dimension]).sum();
            assert_eq!(along, tensor.shape[dimension]);
            let mut at = 0;
            for part in parts {
                let end = at + i64::try_from(part.shape()[dimension]).unwrap();
                let mut index = vec![Index::ALL; dimension];
                index.push(Index::from(at..end));
                assert!(part.bytes() == tensor.sliced(&index).1);
                at = end;
            }
        }
    }
}

#[test]
fn what_is_not_there_is_an_error_that_names_it() {
    let made = made(2);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let text = |error: Error| (error.code(), error.to_string());
    assert_eq!(
        text(checkpoint.tensor("absent").unwrap_err()),
        ("no-tensor", "there is no tensor absent".into())
    );
    let (code, message) = text(checkpoint.slice("t0", [100_000]).unwrap_err());
    assert!(code.starts_with("slice-") && message.starts_with("t0: "), "{code}: {message}");
    let to = weigh::format::Dtype::I8;
    let error = checkpoint.plan(&[Want::new("t0").cast(to)]).unwrap_err();
    assert!(error.code().starts_with("cast-"), "{error}");
}

#[test]
fn every_call_says_how_many_bytes_it_read() {
    let made = made(3);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let tensor = &made.tensors[0];
    let array = checkpoint.tensor(&tensor.name).unwrap();
    assert_eq!(array.bytes_read(), tensor.bytes.len() as u64);
    let row = tensor.bytes.len() as u64 / tensor.shape[0];
    let rows = checkpoint.slice(&tensor.name, [Index::from(10..20)]).unwrap();
    assert_eq!(rows.bytes_read(), 10 * row);
    // Half of each short row: the rows are read through.
    let columns =
        checkpoint.slice(&tensor.name, [Index::ALL, Index::ALL, Index::from(..1)]).unwrap();
    assert!(columns.bytes_read() <= tensor.bytes.len() as u64);
    let all = checkpoint.load(&Selection::all()).unwrap();
    let whole: u64 = made.tensors.iter().map(|it| it.bytes.len() as u64).sum();
    assert_eq!(all.bytes_read(), whole);
}

#[test]
fn a_load_can_be_stopped_by_who_started_it_and_by_others() {
    let made = made(4);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let plan = checkpoint.plan_selected(&Selection::all());
    let cancel = Cancel::new();
    cancel.cancel();
    let options = LoadOptions { cancel: Some(&cancel), ..LoadOptions::default() };
    assert_eq!(plan.load(&options).unwrap_err().code(), "cancelled");
    let stop = |_| ControlFlow::Break(());
    let options = LoadOptions { progress: Some(&stop), ..LoadOptions::default() };
    assert_eq!(plan.load(&options).unwrap_err().code(), "cancelled");

    let cancel = Arc::new(Cancel::new());
    let options = StreamOptions {
        budget: 1 << 20,
        cancel: Some(Arc::clone(&cancel)),
        ..StreamOptions::default()
    };
    let mut stream = plan.stream(&options).unwrap();
    assert!(stream.next().unwrap().is_ok());
    cancel.cancel();
    let last = stream.by_ref().last().unwrap();
    assert_eq!(last.unwrap_err().code(), "cancelled");
    assert!(stream.next().is_none());
}

#[test]
fn a_slice_reads_little_more_than_it_takes_or_what_covers_it() {
    let made = made(8);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let tensor = &made.tensors[0];
    let length = i64::try_from(tensor.shape[0]).unwrap();
    for index in [
        vec![Index::from(length / 4..length / 2)],
        vec![Index::from(3..length).step(2)],
        vec![Index::ALL, Index::At(1)],
        vec![Index::ALL, Index::ALL, Index::from(100..200)],
        vec![Index::from(..2), Index::ALL, Index::from(100..200)],
    ] {
        let want = [Want::new(&tensor.name).slice(index.clone())];
        let loaded = checkpoint.plan(&want).unwrap().load(&LoadOptions::default()).unwrap();
        let report = loaded.report();
        let (read, wanted) = (report.read.bytes_read, report.read.bytes_wanted);
        // A row of the innermost dimension is at most 8 KiB here: gaps of that size are read over.
        let covers = tensor.bytes.len() as u64;
        assert!(read <= wanted + wanted / 10 || read <= covers, "{index:?}: {read} for {wanted}");
        if index.len() < 2 && report.choice.gap_bytes < 2 * 1001 {
            assert_eq!(read, wanted, "{index:?}");
        }
    }
}

#[expect(unsafe_code, reason = "maps want a promise")]
#[test]
fn a_map_has_the_same_bytes_without_reading() {
    let made = made(9);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    // SAFETY: the files are this test's, and nobody writes to them.
    let mapped = checkpoint.map(unsafe { weigh::io::map::Unchanging::promise() }).unwrap();
    for tensor in &made.tensors {
        let view = mapped.get(&tensor.name).unwrap();
        assert_eq!((view.dtype(), view.shape()), (tensor.dtype, &*tensor.shape));
        assert!(*view.bytes() == *tensor.bytes);
    }
    assert!(mapped.get("absent").is_none());
    let sources = checkpoint.shards().iter().map(|shard| shard.file().unwrap().bytes_read());
    assert!(sources.sum::<u64>() < 100_000);
}

#[test]
fn a_load_that_the_machine_has_no_memory_for_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.safetensors");
    let header = r#"{"a":{"dtype":"U8","shape":[4000000000000],"data_offsets":[0,4000000000000]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // All of it a hole.
    file.set_len(bytes.len() as u64 + 4_000_000_000_000).unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    let error = checkpoint.load(&Selection::all()).unwrap_err();
    assert!(["not-enough-memory", "out-of-memory"].contains(&error.code()), "{error}");
    assert_eq!(checkpoint.slice("a", [Index::from(-5..)]).unwrap().bytes(), [0; 5]);
}

#[test]
fn a_plan_says_how_it_would_be_read_and_that_is_how_it_is_read() {
    let made = made(10);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let plan = checkpoint.plan_selected(&Selection::all());
    let read = ReadOptions { request_bytes: Some(100_000), ..ReadOptions::default() };
    let explained = plan.explain(&read);
    let loaded = plan.load(&LoadOptions { read, ..LoadOptions::default() }).unwrap();
    let report = loaded.report();
    assert_eq!(explained.requests, report.read.requests);
    assert_eq!(explained.bytes_read, report.read.bytes_read);
    assert_eq!(explained.choice.request_bytes, 100_000);
    assert!(!explained.choice.reasons.is_empty());
}

#[test]
fn there_is_no_part_for_a_rank_that_there_is_not() {
    let made = made(11);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let tensor = &checkpoint.tensors()[0];
    assert!(tensor.part(0, 7, 8).is_some() && tensor.part(9, 7, 8).is_some());
    assert!(tensor.part(0, 8, 8).is_none() && tensor.part(0, 0, 0).is_none());
}

#[test]
fn every_error_has_its_code_and_words() {
    let name = || String::from("t");
    for (error, code, words) in [
        (
            Error::Buffer { wanted: 8, got: 7 },
            "buffer",
            "8 bytes are read, and the memory for them has 7",
        ),
        (
            Error::Budget { name: name(), wanted: 9, budget: 8 },
            "budget",
            "t: a slice with negative steps comes whole, and its 9 bytes are over the budget of 8",
        ),
        (
            Error::BudgetHeld { held: 5 },
            "budget-held",
            "tensors that were not dropped hold 5 bytes, which leaves too little of the budget for the next",
        ),
        (
            Error::NotEnoughMemory { wanted: 9, available: 8 },
            "not-enough-memory",
            "this takes 9 bytes of memory, and 8 are free",
        ),
        (Error::OutOfMemory { wanted: 9 }, "out-of-memory", "the system has no 9 bytes of memory"),
        (
            Error::CastInsideByte { name: name() },
            "cast-inside-byte",
            "t: a slice that ends inside a byte cannot be converted",
        ),
        (
            Error::TooManyPieces,
            "too-many-pieces",
            "the slices are of too many pieces to be read at once",
        ),
        (Error::Cancelled, "cancelled", "cancelled"),
        // Names are a file's, or come from whoever asks: no control character of theirs gets through.
        (
            Error::NoTensor { name: "a\u{1b}[2J\n".into() },
            "no-tensor",
            r"there is no tensor a\u001b[2J\n",
        ),
        (Error::Internal { message: name() }, "internal", "an error of weigh's own: t"),
    ] {
        assert_eq!((error.code(), error.to_string().as_str()), (code, words));
    }
}

#[test]
fn a_reversed_slice_over_the_budget_is_refused() {
    let made = made(12);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let large = made.tensors.iter().find(|tensor| tensor.bytes.len() > 2 << 20).unwrap();
    let want = [Want::new(&large.name).slice([Index::ALL.step(-1)])];
    let options = StreamOptions { budget: 1 << 20, ..StreamOptions::default() };
    let error = checkpoint.plan(&want).unwrap().stream(&options).unwrap_err();
    assert_eq!(error.code(), "budget");
}

#[test]
fn whoever_holds_the_whole_budget_and_waits_for_more_is_told() {
    let made = made(5);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let plan = checkpoint.plan_selected(&Selection::all());
    let options = StreamOptions {
        budget: 1 << 20,
        patience: Duration::from_millis(50),
        ..StreamOptions::default()
    };
    let held: Vec<_> = plan.stream(&options).unwrap().collect();
    let (last, others) = held.split_last().unwrap();
    assert_eq!(last.as_ref().unwrap_err().code(), "budget-held");
    assert!(others.iter().all(Result::is_ok));
    let bytes: usize = others.iter().map(|item| item.as_ref().unwrap().array.bytes().len()).sum();
    assert!(bytes <= 1 << 20, "{bytes}");
}

#[test]
fn a_stream_that_is_dropped_ends_and_what_it_gave_stays() {
    let made = made(6);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let mut stream = checkpoint.stream(Order::File, 1 << 20).unwrap();
    let first = stream.next().unwrap().unwrap();
    drop(stream);
    drop(checkpoint);
    let tensor = made.tensor(&first.name);
    assert!(*first.array.bytes() == tensor.bytes[..first.array.bytes().len()]);
}

#[test]
fn a_file_that_changed_since_it_was_opened_is_refused() {
    let made = made(7);
    let checkpoint = Checkpoint::open(made.path()).unwrap();
    let shard = checkpoint.shards()[0].path();
    let bytes = std::fs::read(shard).unwrap();
    let load = || checkpoint.load(&Selection::all());
    assert!(load().is_ok());
    let code = |result: Result<_, Error>| result.map(|_: weigh::Loaded| ()).unwrap_err().code();
    std::fs::write(shard, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(code(load()), "io-changed");
    std::fs::write(shard, [&bytes[..], b"x"].concat()).unwrap();
    assert_eq!(code(load()), "io-changed");
    let other = made.path().join("other");
    std::fs::write(&other, &bytes).unwrap();
    std::fs::rename(&other, shard).unwrap();
    let error = load().unwrap_err();
    assert_eq!(error.code(), "io-changed");
    assert!(error.to_string().starts_with(&shard.display().to_string()), "{error}");
}
