//! Help that was written for the command line and for Rust, in the words of Python.

/// What is called otherwise, and how.
const WORDS: [(&str, &str); 7] = [
    ("--max-header or in Limits::tensors", "`max_header=`"),
    (", in Limits::name_bytes", ", which the program `weigh` and Rust can"),
    ("--max-header", "`max_header=`"),
    ("with `weigh ls`", "with `.keys()`"),
    ("(`--force`)", "(`replace=True`)"),
    ("(`weigh split --name`)", "(`stem=`)"),
    (": see `weigh meta`", ""),
];

/// The same help for a program in Python.
pub(crate) fn python(help: &str) -> String {
    WORDS.iter().fold(help.to_owned(), |help, (theirs, ours)| help.replace(theirs, ours))
}
