//! Loading, against a reference that walks over every element of the file's bytes.

use std::num::NonZero;

use crate::made::{Made, Random};
use weigh::format::Dtype;
use weigh::format::slice::Index;
use weigh::io::policy::{Backend, Direct, ReadOptions};
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
                let mut way = ReadOptions::default();
                way.backend = Some(backend);
                way.direct = Some(direct);
                way.threads = NonZero::new(threads);
                way.depth = NonZero::new(threads + 1);
                way.request_bytes = Some(request_bytes);
                way.gap_bytes = Some(gap_bytes);
                way.huge_pages = Some(threads == 2);
                ways.push(way);
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
        let to = to.filter(|to| Cast::new(tensor.dtype, *to).is_ok());
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
    let cast = Cast::new(tensor.dtype, *to).unwrap();
    let mut bytes = vec![0; dense.len() / cast.unit().from_bytes * cast.unit().to_bytes];
    cast.convert(&dense, &mut bytes).unwrap();
    (shape, bytes)
}

#[test]
fn every_way_of_reading_gives_the_bytes_that_a_walk_over_the_elements_gives() {
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
            assert!(report.bytes_read >= report.bytes_wanted || wants.len() > 1, "{report:?}");
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
}
