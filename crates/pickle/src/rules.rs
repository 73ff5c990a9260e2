//! The rules of a pickle, each once: id, code, severity, what it says, what to do.

weigh_format::rules! {
    UNKNOWN_GLOBAL = "ST-PKL-GLOBAL" Deviation "unknown-global",
        "A pickle of weights names nothing but constructors of tensors, arrays and plain values.",
        "Unpickling would import this name. Find out what it is before anything else loads the file.";
    DOTTED_NAME = "ST-PKL-DOTTED" Deviation "dotted-name",
        "A name is one attribute of its module.",
        "A name with dots walks from attribute to attribute, past what looks only at its beginning: treat the file as hostile.";
    FOREIGN_CALL = "ST-PKL-CALL" Error "foreign-call",
        "A pickle of weights calls nothing but constructors of tensors, arrays and plain values.",
        "Unpickling would run this. Do not load the file with anything that unpickles; convert it to safetensors if its tensors are wanted.";
    FOREIGN_ATTRIBUTE = "ST-PKL-CALL" Error "foreign-attribute",
        "No attribute of an object is a function or a class of another program.",
        "Python looks up methods on the object, as __setstate__, and would call this instead: treat it as a call.";
    NUMPY_STATE = "ST-PKL-NUMPY" Error "numpy-state",
        "The state of a dtype says what its name says, and whether its elements are objects.",
        "numpy would take the bytes of an array for addresses of objects, or read beyond them: treat the file as hostile.";
    FOREIGN_ITEMS = "ST-PKL-CALL" Error "foreign-items",
        "Items are set in, and added to, plain containers.",
        "Unpickling would run the object's own code for each item: treat it as a call.";
    BUILD_TARGET = "ST-PKL-BUILD" Error "build-target",
        "BUILD sets the state of an object that the pickle made.",
        "On anything else it changes what it was not given, as a module's function: treat the file as hostile.";
    ITEM_TARGET = "ST-PKL-ITEM" Error "item-target",
        "SETITEM is for mappings, APPEND for lists, ADDITEMS for sets.",
        "On a tensor this writes where it should not (CVE-2026-24747): treat the file as hostile.";
    EXTENSION_REGISTRY = "ST-PKL-EXT" Error "extension-registry",
        "A pickle names what it needs, and does not number it.",
        "The number stands for whatever the program that loads the file has registered: nobody can tell what from the file.";
    PERSISTENT_ID_TEXT = "ST-PKL-PERSID" Error "persistent-id-text",
        "Persistent ids are on the stack.",
        "No version of torch writes ids as text: the file is of another program, or made by hand.";
    FRAME_STRADDLED = "ST-PKL-FRAME" Error ambiguous "frame-straddled",
        "Every opcode is within one frame or within none.",
        "Readers disagree on what such a pickle says: treat the file as hostile.";
    FRAME_NESTED = "ST-PKL-FRAME" Error ambiguous "frame-nested",
        "A frame ends before the next one begins.",
        "Readers disagree on what such a pickle says: treat the file as hostile.";
    FRAME_PAST_STOP = "ST-PKL-FRAME" Deviation ambiguous "frame-past-stop",
        "The last frame ends with STOP.",
        "Readers disagree on where the next pickle begins: look at what is behind STOP.";
    PROTO_NOT_FIRST = "ST-PKL-PROTO" Deviation "proto-not-first",
        "PROTO is the first opcode, and is there once.",
        "It changes how later names are read, which not every reader knows: find out what wrote it.";
    ABOVE_PROTOCOL = "ST-PKL-PROTO" Note "opcode-above-protocol",
        "Opcodes are of the protocol that the pickle claims, or of an older one.",
        "No pickler writes this: the pickle was made by hand.";
    MEMO_MIXED = "ST-PKL-MEMO" Note "memo-mixed",
        "A pickle uses PUT or MEMOIZE, not both.",
        "Readers that count wrong see other names than are there; this one counts as Python does. No pickler writes this.";
    STACK_NOT_EMPTY = "ST-PKL-STACK" Note "stack-not-empty",
        "STOP finds one value on the stack.",
        "Values below it are made and dropped, which hides them from who looks only at the result.";
    TRAILING_BYTES = "ST-PKL-TRAIL" Deviation ambiguous "trailing-bytes",
        "Nothing follows STOP.",
        "Look at the bytes before trusting the file: readers ignore them, and another container may begin there.";
    SEVERAL_PICKLES = "ST-PKL-MULTI" Deviation "several-pickles",
        "A file of its own has one pickle.",
        "Most readers stop after the first; the others may be loaded by whoever knows of them.";
    NESTED_PICKLE = "ST-PKL-NESTED" Deviation "nested-pickle",
        "No string in a pickle is a pickle itself.",
        "Whoever unpickles the string runs what it says; it is reported as if it stood in the file.";
    NESTED_LIMIT = "ST-PKL-NESTED" Error ambiguous "nested-limit",
        "Pickles in strings can be followed to their end.",
        "There are more of them, or deeper ones, than an honest file has: treat the file as hostile.";
    GRAPH_EXPANSION = "ST-PKL-LIMIT" Error ambiguous "graph-expansion",
        "Written out as a tree, a pickle is not much larger than it is.",
        "Programs that walk it as a tree never end: the file was made to exhaust them.";
    ALLOCATION = "ST-PKL-LIMIT" Error ambiguous "allocation",
        "What a pickle makes is of the size of what is in it.",
        "Unpickling it fills the memory: the file was made to exhaust it. An honest one needs a larger limit (made-bytes).";
    GRAPH_CYCLE = "ST-PKL-CYCLE" Note "graph-cycle",
        "No container is in itself.",
        "Programs that walk it as a tree never end.";
    TEXT_SURROGATES = "ST-PKL-TEXT" Note "text-surrogates",
        "Text has no surrogates.",
        "Such text cannot be written as UTF-8, nor as the name of a tensor.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_kebab_case_and_ids_are_of_pickles() {
        let codes: BTreeSet<_> = RULES.iter().map(|rule| rule.code).collect();
        assert_eq!(codes.len(), RULES.len());
        for rule in RULES {
            assert!(
                rule.code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')),
                "{}",
                rule.code
            );
            assert!(rule.summary.ends_with('.') && rule.help.ends_with('.'), "{}", rule.code);
            assert!(rule.id.starts_with("ST-PKL-"), "{}", rule.code);
        }
    }
}
