//! The tensors of a survey that are meant, in the order that was asked for.
