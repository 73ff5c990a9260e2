//! The rules of checkpoints and of what lies beside them, each once.

weigh_format::rules! {
    STORAGE_LONG = "ST-TEN-STORAGE" Deviation "storage-long",
        "A storage has as many bytes as the pickle says.",
        "torch refuses the file; the bytes that are too many belong to no tensor.";
}
