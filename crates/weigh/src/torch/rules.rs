//! The rules of checkpoints as a whole and of what lies beside them, each once.

weigh_format::rules! {
    UNREADABLE = "ST-SCAN-READ" Error "unreadable",
        "All of a checkpoint can be read to its end.",
        "What was not read may say anything: get the file again, raise the limit that it names, or do not load it.";
    NOT_OPENED = "ST-SCAN-KIND" Error "not-opened",
        "All parts of a checkpoint are of kinds that weigh looks into.",
        "Look at it with a program that knows the kind: nothing is said here about what is in it.";
    NAME_DIFFERS = "ST-EXTNAME" Deviation "name-differs",
        "A file is of the kind that its name says.",
        "Programs choose the loader by the name or by the bytes: find out which this file is meant for.";
    WRAPPER_TAIL = "ST-WRAP" Error ambiguous "wrapper-trailing-bytes",
        "Nothing follows what is packed.",
        "Programs that unpack read on, or stop: they see different files.";
    STORAGE_LONG = "ST-TEN-STORAGE" Deviation "storage-long",
        "A storage has as many bytes as the pickle says.",
        "torch refuses the file; the bytes that are too many belong to no tensor.";
    CUSTOM_CODE = "ST-DIR-CODE" Note "custom-code",
        "A model is data.",
        "Loaders with trust_remote_code import such a file: read it before allowing that.";
    AUTO_MAP = "ST-DIR-AUTOMAP" Note "auto-map",
        "A configuration names no code of its own.",
        "transformers imports the code it names if trust_remote_code is set: read that code first.";
    KERAS_LAMBDA = "ST-DIR-LAMBDA" Note "keras-lambda",
        "A Keras model has no Lambda layer.",
        "Its function is compiled Python, which Keras runs unless safe_mode holds: do not load it without.";
    TEMPLATE = "ST-DIR-TEMPLATE" Note "chat-template",
        "A model has no programs in templates.",
        "A chat template is a Jinja program that is run for every prompt: render it in a sandbox alone, and read it.";
    EXECUTABLE = "ST-DIR-EXEC" Note "executable",
        "A model comes without executables.",
        "Weights need none: find out what it is for.";
}
