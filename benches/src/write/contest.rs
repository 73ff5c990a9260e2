//! The contests: what is written, and where.

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Work {
    Save,
    Edit,
    InPlace,
    Cast,
    /// Of a checkpoint of torch.
    Convert,
    /// Of one of many tensors that are small.
    ConvertSmall,
}

/// Where the files are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Storage {
    /// A file system in memory, on which nothing is synced.
    Memory,
    /// A disk, on which everything is.
    Disk,
}

/// Work at a place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Contest {
    pub(crate) work: Work,
    pub(crate) storage: Storage,
}

pub(crate) const CONTESTS: [Contest; 12] = [
    Contest { work: Work::Save, storage: Storage::Memory },
    Contest { work: Work::Edit, storage: Storage::Memory },
    Contest { work: Work::Cast, storage: Storage::Memory },
    Contest { work: Work::InPlace, storage: Storage::Memory },
    Contest { work: Work::Convert, storage: Storage::Memory },
    Contest { work: Work::ConvertSmall, storage: Storage::Memory },
    Contest { work: Work::Save, storage: Storage::Disk },
    Contest { work: Work::Edit, storage: Storage::Disk },
    Contest { work: Work::Cast, storage: Storage::Disk },
    Contest { work: Work::InPlace, storage: Storage::Disk },
    Contest { work: Work::Convert, storage: Storage::Disk },
    Contest { work: Work::ConvertSmall, storage: Storage::Disk },
];

impl Contest {
    pub(crate) const fn name(self) -> &'static str {
        match (self.work, self.storage) {
            (Work::Save, Storage::Memory) => "save-memory",
            (Work::Save, Storage::Disk) => "save-disk",
            (Work::Edit, Storage::Memory) => "edit-memory",
            (Work::Edit, Storage::Disk) => "edit-disk",
            (Work::Cast, Storage::Memory) => "cast-memory",
            (Work::Cast, Storage::Disk) => "cast-disk",
            (Work::InPlace, Storage::Memory) => "in-place-memory",
            (Work::InPlace, Storage::Disk) => "in-place-disk",
            (Work::Convert, Storage::Memory) => "convert-memory",
            (Work::Convert, Storage::Disk) => "convert-disk",
            (Work::ConvertSmall, Storage::Memory) => "convert-small-memory",
            (Work::ConvertSmall, Storage::Disk) => "convert-small-disk",
        }
    }

    pub(crate) const fn described(self) -> &'static str {
        match (self.work, self.storage) {
            (Work::Save, Storage::Memory) => {
                "Tensors from memory to a file system in memory, not synced."
            }
            (Work::Save, Storage::Disk) => "Tensors from memory to a disk, synced.",
            (Work::Edit, Storage::Memory) => {
                "Files to files on a file system in memory, not synced."
            }
            (Work::Edit, Storage::Disk) => "Files in the page cache to files on a disk, synced.",
            (Work::Cast, Storage::Memory) => {
                "A file of F32 to one of BF16 on a file system in memory, not synced."
            }
            (Work::Cast, Storage::Disk) => {
                "A file of F32 in the page cache to one of BF16 on a disk, synced."
            }
            (Work::InPlace, Storage::Memory) => {
                "A pair of the metadata, set in place, on a file system in memory."
            }
            (Work::InPlace, Storage::Disk) => {
                "A pair of the metadata, set in place, on a disk, synced."
            }
            (Work::Convert, Storage::Memory) => {
                "A checkpoint of torch to safetensors on a file system in memory, not synced."
            }
            (Work::Convert, Storage::Disk) => {
                "A checkpoint of torch in the page cache to safetensors on a disk, synced."
            }
            (Work::ConvertSmall, Storage::Memory) => {
                "20 000 small tensors of torch to safetensors on a file system in memory, not synced."
            }
            (Work::ConvertSmall, Storage::Disk) => {
                "20 000 small tensors of torch in the page cache to safetensors on a disk, synced."
            }
        }
    }

    pub(crate) const fn is_on_disk(self) -> bool {
        matches!(self.storage, Storage::Disk)
    }
}
