"""Pickles that name and call a thing, made byte by byte. They are never unpickled here."""


def text(value):
    encoded = value.encode()
    return b"X" + len(encoded).to_bytes(4, "little") + encoded


def by_name(module, name):
    """GLOBAL: the module and the name are lines."""
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def by_stack(module, name):
    """STACK_GLOBAL: they are texts on the stack."""
    return text(module) + text(name) + b"\x93"


# How a pickle names a thing and does something with it, as a value of a dictionary.
FORMS = {
    "reduce": lambda module, name: by_name(module, name) + b")R",
    "reduce_of_arguments": lambda module, name: by_name(module, name) + b"(K\x01" + text("a") + b"tR",
    "reduce_stack": lambda module, name: by_stack(module, name) + b")R",
    "newobj": lambda module, name: by_name(module, name) + b")\x81",
    "newobj_stack": lambda module, name: by_stack(module, name) + b")\x81",
    "newobj_ex": lambda module, name: by_name(module, name) + b")}\x92",
    "inst": lambda module, name: b"(i" + module.encode() + b"\n" + name.encode() + b"\n",
    "obj": lambda module, name: b"(" + by_name(module, name) + b"o",
    "popped": lambda module, name: by_name(module, name) + b")R0N",
    "memoized": lambda module, name: by_name(module, name) + b"q\x000h\x00)R",
    "called_twice": lambda module, name: by_name(module, name) + b")R)R",
    "given_a_state": lambda module, name: by_name(module, name) + b")R}b",
    "as_an_argument": lambda module, name: by_name("collections", "OrderedDict") + by_name(module, name) + b")R\x85R",
    "with_items": lambda module, name: by_name(module, name) + b")R(" + text("k") + b"K\x01u",
    "with_appends": lambda module, name: by_name(module, name) + b")R(K\x01e",
}

# How it is only named.
NAMED = {
    "global": by_name,
    "stack_global": by_stack,
    "named_and_popped": lambda module, name: by_name(module, name) + b"0N",
    "in_a_list": lambda module, name: b"]" + by_name(module, name) + b"a",
}


def pickle(form, module, name):
    """A dictionary that has what the form makes, as a whole pickle."""
    make = FORMS.get(form) or NAMED[form]
    return b"\x80\x04}" + text("a") + make(module, name) + b"s."
