//! Checkpoints that are made here, as torch writes them, and what converting makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weigh::format::Dtype;
use weigh::torch::{ConvertOptions, ConvertPlan};
use weigh::{Checkpoint, Error, Output, Watch};

/// What is converted to: the dtype, the shape and the bytes of each tensor, by name.
pub(crate) type Tensors = BTreeMap<String, (Dtype, Vec<u64>, Vec<u8>)>;

/// A folder to convert in.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// The names of what is there.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The tensors of a checkpoint, converted.
    pub(crate) fn converted(
        &self,
        checkpoint: &[u8],
        options: &ConvertOptions,
    ) -> Result<Tensors, Error> {
        let input = self.file("in.pt", checkpoint);
        let output = self.path("out.safetensors");
        let _ = fs::remove_file(&output);
        convert(&input, &Output::File(output.clone()), options)?;
        Ok(tensors(&output))
    }
}

/// Converts what is at a path.
pub(crate) fn convert(
    input: &Path,
    output: &Output,
    options: &ConvertOptions,
) -> Result<ConvertPlan, Error> {
    // Whether it is on the disk is not asked here.
    let mut options = options.clone();
    options.write.sync = false;
    let plan = ConvertPlan::new(input, output, &options)?;
    plan.write(Watch::default())?;
    Ok(plan)
}

/// The tensors of safetensors.
pub(crate) fn tensors(path: &PathBuf) -> Tensors {
    let checkpoint = Checkpoint::open(path).unwrap();
    let tensors = checkpoint.tensors().into_iter();
    tensors
        .map(|tensor| {
            let bytes = tensor.shard.file().unwrap().read_span(tensor.span.clone()).unwrap();
            (tensor.name.into(), (tensor.dtype, tensor.shape.to_vec(), bytes))
        })
        .collect()
}

/// The metadata of safetensors.
pub(crate) fn metadata(path: &PathBuf) -> BTreeMap<String, String> {
    let checkpoint = Checkpoint::open(path).unwrap();
    checkpoint.shards()[0].header().metadata().collect()
}

/// A checkpoint of torch.
#[derive(Clone, Default)]
pub(crate) struct Made {
    /// The class and the bytes of each storage; its key is its place.
    pub(crate) storages: Vec<(&'static str, u64, Vec<u8>)>,
    /// What is in the state dict, pickled.
    pub(crate) entries: Vec<(String, Vec<u8>)>,
    pub(crate) big_endian: bool,
    pub(crate) deflated: bool,
}

impl Made {
    /// Adds a storage: its class, the bytes of an element, its bytes. Says which it is.
    pub(crate) fn storage(&mut self, class: &'static str, element: u64, bytes: Vec<u8>) -> usize {
        self.storages.push((class, element, bytes));
        self.storages.len() - 1
    }

    /// Adds a view of a storage, the offset and the strides in elements.
    pub(crate) fn view(
        &mut self,
        name: &str,
        storage: usize,
        offset: u64,
        shape: &[u64],
        strides: &[u64],
    ) -> &mut Self {
        self.view_with(name, storage, offset, shape, strides, &[])
    }

    /// The same, with bits of its metadata set: `neg`, `conj`.
    pub(crate) fn view_with(
        &mut self,
        name: &str,
        storage: usize,
        offset: u64,
        shape: &[u64],
        strides: &[u64],
        bits: &[&str],
    ) -> &mut Self {
        let mut pickle = global("torch._utils", "_rebuild_tensor_v2");
        pickle.push(b'(');
        // The place of the persistent id, which is another in a legacy file.
        pickle.extend(MARK);
        pickle.extend(u32::try_from(storage).unwrap().to_le_bytes());
        pickle.extend(integer(offset));
        pickle.extend(tuple(shape));
        pickle.extend(tuple(strides));
        pickle.push(b'\x89');
        pickle.extend(global("collections", "OrderedDict"));
        pickle.extend(b")R");
        if !bits.is_empty() {
            pickle.push(b'}');
            for bit in bits {
                pickle.extend(text(bit));
                pickle.extend(b"\x88s");
            }
        }
        pickle.extend(b"tR");
        self.value(name, pickle)
    }

    /// Adds anything, pickled.
    pub(crate) fn value(&mut self, name: &str, pickle: Vec<u8>) -> &mut Self {
        self.entries.push((name.into(), pickle));
        self
    }

    fn pickle(&self, legacy: bool) -> Vec<u8> {
        let mut pickle = b"\x80\x02}(".to_vec();
        for (name, value) in &self.entries {
            pickle.extend(text(name));
            let mut rest = value.as_slice();
            while let Some(at) = rest.windows(MARK.len()).position(|it| it == MARK) {
                let after = &rest[at + MARK.len()..];
                let storage = u32::from_le_bytes(after[..4].try_into().unwrap());
                pickle.extend(&rest[..at]);
                pickle.extend(self.persistent_id(storage as usize, legacy));
                rest = &after[4..];
            }
            pickle.extend(rest);
        }
        pickle.extend(b"u.");
        pickle
    }

    fn persistent_id(&self, storage: usize, legacy: bool) -> Vec<u8> {
        let (class, element, bytes) = &self.storages[storage];
        let mut pickle = b"(".to_vec();
        pickle.extend(text("storage"));
        pickle.extend(global("torch", class));
        pickle.extend(text(&storage.to_string()));
        pickle.extend(text("cpu"));
        pickle.extend(integer(bytes.len() as u64 / element));
        pickle.extend(if legacy { &b"NtQ"[..] } else { b"tQ" });
        pickle
    }

    /// As torch writes it since 1.6.
    pub(crate) fn zip(&self) -> Vec<u8> {
        let order: &[u8] = if self.big_endian { b"big" } else { b"little" };
        let mut members = vec![
            ("archive/data.pkl".to_string(), self.pickle(false)),
            ("archive/byteorder".into(), order.to_vec()),
        ];
        for (key, (_, _, bytes)) in self.storages.iter().enumerate() {
            members.push((format!("archive/data/{key}"), bytes.clone()));
        }
        members.push(("archive/version".into(), b"3\n".to_vec()));
        zip(&members, self.deflated)
    }

    /// As torch wrote it up to 1.5.
    pub(crate) fn legacy(&self) -> Vec<u8> {
        let mut file = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec();
        file.extend(b"\x80\x02M\xe9\x03.\x80\x02}.");
        file.extend(self.pickle(true));
        file.extend(b"\x80\x02](");
        (0..self.storages.len()).for_each(|key| file.extend(text(&key.to_string())));
        file.extend(b"e.");
        for (_, element, bytes) in &self.storages {
            file.extend((bytes.len() as u64 / element).to_le_bytes());
            file.extend(bytes);
        }
        file
    }
}

/// What stands for a persistent id until the file is made.
const MARK: &[u8] = b"<persistent id>";

pub(crate) fn text(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    [b"X", &length.to_le_bytes()[..], text.as_bytes()].concat()
}

pub(crate) fn integer(number: u64) -> Vec<u8> {
    let number = i32::try_from(number).unwrap();
    [b"J", &number.to_le_bytes()[..]].concat()
}

pub(crate) fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

fn tuple(numbers: &[u64]) -> Vec<u8> {
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| integer(*number)).collect();
    [b"(", numbers.as_slice(), b"t"].concat()
}

/// An archive of these members.
pub(crate) fn zip(members: &[(String, Vec<u8>)], deflated: bool) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let stored =
            if deflated { miniz_oxide::deflate::compress_to_vec(bytes, 1) } else { bytes.clone() };
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let mut fields = vec![20, 0, 0, 0];
        fields.extend([u8::from(deflated) * 8, 0]);
        fields.extend([0, 0, 0x21, 0]);
        fields.extend(crc32fast::hash(bytes).to_le_bytes());
        fields.extend(size(&stored));
        fields.extend(size(bytes));
        fields.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        fields.extend([0, 0]);
        let begin = size(&file);
        file.extend(b"PK\x03\x04");
        file.extend(&fields);
        file.extend(name.as_bytes());
        file.extend(&stored);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend(begin);
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    let place = u32::try_from(file.len()).unwrap().to_le_bytes();
    let length = u32::try_from(directory.len()).unwrap().to_le_bytes();
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([&count, &count, &length[..], &place, &[0, 0]].concat());
    file
}
