//! Loading, against a reference that walks over every element of the file's bytes.

use std::num::NonZero;

use crate::made::{self, Made, Random};
use weigh::format::Dtype;
use weigh::format::slice::Index;
use weigh::io::policy::{Backend, Direct, ReadOptions};
use weigh::io::system::{Uring, uring};
use weigh::values::cast::Cast;
use weigh::{Checkpoint, LoadOptions, Order, StreamOptions, Want};

/// Every backend, with and without the page cache, in small requests and large ones.
fn ways() -> Vec<ReadOptions> {
    let mut ways = vec![ReadOptions::default()];
    for backend in [Backend::Pread, Backend::Uring, Backend::Mmap] {
        for direct in [Direct::Never, Direct::Always, Direct::Probe] {
            for (threads, request_bytes, gap_bytes) in
                [(1, 4096, 0), (3, 40_000, 5000), (2, 4 << 20, 1 << 20)]
            {
                ways.push(ReadOptions {
                    backend: Some(backend),
                    direct: Some(direct),
                    threads: NonZero::new(threads),
                    depth: NonZero::new(threads + 1),
                    request_bytes: Some(request_bytes),
                    gap_bytes: Some(gap_bytes),
                    huge_pages: Some(threads == 2),
                });
            }
        }
    }
    ways
}

/// Tensors and slices at random: some whole, some twice, some as another float.
fn wants<'m>(made: &'m Made, random: &mut Random) -> Vec<(Want<'m>, Vec<Index>, Option<Dtype>)> {
    let count = 1 + random.below(12);
    let want = |_| {
        let tensor = &made.tensors[random.below(made.tensors.len())];
        let index: Vec<Index> = match random.below(3) {
            0 => Vec::new(),
            _ => tensor.shape.iter().map(|size| random.index(*size)).collect(),
        };
        let targets = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16];
        let to = Some(targets[random.below(4)]).filter(|_| random.below(2) == 0);
        let to = to.filter(|to| Cast::between_floats(tensor.dtype, *to).is_ok());
        let mut want = Want::new(&tensor.name).slice(index.clone());
        if let Some(to) = to {
            want = want.cast(to);
        }
        (want, index, to)
    };
    (0..count).map(want).collect()
}

/// What the reference says: the shape and the bytes.
fn expected(made: &Made, want: &(Want<'_>, Vec<Index>, Option<Dtype>)) -> (Vec<u64>, Vec<u8>) {
    let (want, index, to) = want;
    let tensor = made.tensor(want.name());
    let (shape, dense) = tensor.sliced(index);
    let Some(to) = to else { return (shape, dense) };
    let cast = Cast::between_floats(tensor.dtype, *to).unwrap();
    let mut bytes = vec![0; dense.len() / cast.unit().from_bytes * cast.unit().to_bytes];
    cast.convert(&dense, &mut bytes).unwrap();
    (shape, bytes)
}

#[test]
fn every_way_of_reading_gives_the_bytes_that_a_walk_over_the_elements_gives() {
    let rings = uring() == Uring::Available;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let made = Made::new(&mut random);
        let checkpoint = Checkpoint::open(made.path()).unwrap();
        let wants = wants(&made, &mut random);
        let expected: Vec<_> = wants.iter().map(|want| expected(&made, want)).collect();
        let plan = checkpoint.plan(wants.iter().map(|(want, ..)| want)).unwrap();
        for read in ways() {
            let loaded = plan.load(&LoadOptions { read, ..LoadOptions::default() }).unwrap();
            assert_eq!(loaded.len(), wants.len());
            for ((name, array), ((want, ..), (shape, bytes))) in
                loaded.iter().zip(wants.iter().zip(&expected))
            {
                assert_eq!((name, array.shape()), (want.name(), shape.as_slice()));
                assert!(array.bytes() == bytes, "seed {seed}, {read:?}, {want:?}");
                assert!(array.bytes().as_ptr().addr().is_multiple_of(64));
            }
            let report = &loaded.report().read;
            if report.bytes_read > 0 && read.direct == Some(Direct::Always) && rings {
                let asked = read.backend.unwrap();
                assert!(report.backend == asked, "{report:?}, {read:?}");
            }
            if wants.len() == 1 {
                assert!(report.bytes_read >= report.bytes_wanted, "{report:?}");
            }
        }
    }
}

#[test]
fn the_callers_memory_gets_the_same() {
    for seed in 100..130 {
        let mut random = Random::new(seed);
        let made = Made::new(&mut random);
        let checkpoint = Checkpoint::open(made.path()).unwrap();
        let wants = wants(&made, &mut random);
        let plan = checkpoint.plan(wants.iter().map(|(want, ..)| want)).unwrap();
        let places = plan.places();
        let length = usize::try_from(places.last().unwrap().end).unwrap();
        let mut buffer = vec![0xaa; length];
        plan.read_into(&mut buffer, &LoadOptions::default()).unwrap();
        for (place, want) in places.iter().zip(&wants) {
            assert_eq!(place.start % 64, 0);
            let place = usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap();
            assert!(buffer[place] == expected(&made, want).1, "seed {seed}, {want:?}");
        }
        if length > 0 {
            let error = plan.read_into(&mut buffer[1..], &LoadOptions::default()).unwrap_err();
            assert_eq!(error.code(), "buffer");
        }
    }
}

#[test]
fn a_stream_gives_the_same_in_pieces_or_whole() {
    let mut streams = 0;
    for seed in 200..230 {
        let mut random = Random::new(seed);
        let mut made = Made::new(&mut random);
        if seed % 3 == 0 {
            made = Made::large(&mut random);
        }
        let checkpoint = Checkpoint::open(made.path()).unwrap();
        let wants = wants(&made, &mut random);
        let plan = checkpoint.plan(wants.iter().map(|(want, ..)| want)).unwrap();
        let options = StreamOptions { order: Order::Given, budget: 0, ..StreamOptions::default() };
        let stream = match plan.stream(&options) {
            Err(error) if error.code() == "budget" => continue,
            stream => stream.unwrap(),
        };
        streams += 1;
        let mut expected = wants.iter().map(|want| (want.0.name(), expected(&made, want)));
        let mut bytes: Vec<u8> = Vec::new();
        let mut element = 0;
        for item in stream {
            let item = item.unwrap();
            assert_eq!(item.elements.start, element);
            element = item.elements.end;
            assert!(item.is_whole() || item.array.bytes().len() <= 1 << 18);
            bytes.extend_from_slice(item.array.bytes());
            if item.is_last {
                let (name, (shape, want)) = expected.next().unwrap();
                assert_eq!((name, &shape), (item.name.as_str(), &item.shape));
                assert!(bytes == want, "seed {seed}, {name}");
                bytes.clear();
                element = 0;
            }
        }
        assert!(expected.next().is_none());
    }
    assert!(streams > 20, "{streams}");
}

/// Elements of under 8 bits, packed from the low bits of a byte up.
#[test]
fn elements_of_less_than_a_byte_are_loaded_sliced_cast_and_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let tensor = |name: &str, dtype, shape: &[u64], bytes: usize| made::MadeTensor {
        name: name.into(),
        dtype,
        shape: shape.to_vec(),
        bytes: (0..bytes)
            .map(|at| (at as u64).wrapping_mul(0x9e37_79b9).to_be_bytes()[4])
            .collect(),
    };
    let four = tensor("four", Dtype::F4, &[6, 8], 24);
    let six = tensor("six", Dtype::F6_E2M3, &[1 << 20, 4], 3 << 20);
    made::write(&path, &[&four, &six]);
    let checkpoint = Checkpoint::open(&path).unwrap();

    assert!(*checkpoint.tensor("four").unwrap().bytes() == *four.bytes);
    let rows = checkpoint.slice("four", [Index::from(1..6).step(2)]).unwrap();
    assert_eq!(rows.bytes(), [&four.bytes[4..8], &four.bytes[12..16], &four.bytes[20..]].concat());
    // Three elements end inside a byte, whose other half is not theirs.
    let odd = checkpoint.slice("four", [Index::At(2), Index::from(..3)]).unwrap();
    assert_eq!(odd.bytes(), [four.bytes[8], four.bytes[9] & 0x0f]);
    assert!(checkpoint.slice("four", [Index::ALL, Index::from(1..3)]).is_err());
    let odd = Want::new("four").slice([Index::At(2), Index::from(..3)]).cast(Dtype::F32);
    assert_eq!(checkpoint.plan(&[odd]).unwrap_err().code(), "cast-inside-byte");

    let cast = Cast::between_floats(Dtype::F6_E2M3, Dtype::F32).unwrap();
    let mut floats = vec![0; 16 << 20];
    cast.convert(&six.bytes, &mut floats).unwrap();
    let want = [Want::new("six").cast(Dtype::F32)];
    let plan = checkpoint.plan(&want).unwrap();
    assert!(*plan.load(&LoadOptions::default()).unwrap().get("six").unwrap().bytes() == *floats);
    let options = StreamOptions { budget: 3 << 20, ..StreamOptions::default() };
    let (mut streamed, mut pieces, mut elements) = (Vec::new(), 0, 0);
    for piece in plan.stream(&options).unwrap() {
        let piece = piece.unwrap();
        streamed.extend_from_slice(piece.array.bytes());
        assert_eq!(piece.elements.start, elements);
        (pieces, elements) = (pieces + 1, piece.elements.end);
    }
    assert!(streamed == floats && pieces > 4 && elements == 4 << 20);
}
