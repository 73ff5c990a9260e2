//! The names that have a meaning: constructors of tensors, of arrays and of plain values. Everything else is opaque.
//!
//! A name is in the table as a whole, module and all, or it is not: there are no prefixes and no wildcards. Dotted
//! names, which walk attributes, are never there.

mod table;

use table::TABLE;

/// What a name means.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Known {
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `builtins.dict`.
    Dict,
    /// `collections.defaultdict`.
    DefaultDict,
    /// `collections.Counter`.
    Counter,
    /// `torch._utils._rebuild_tensor`.
    RebuildTensor,
    /// `torch._utils._rebuild_tensor_v2`.
    RebuildTensorV2,
    /// `torch._utils._rebuild_tensor_v3`.
    RebuildTensorV3,
    /// `torch._utils._rebuild_parameter`.
    RebuildParameter,
    /// `torch._utils._rebuild_parameter_with_state`.
    RebuildParameterWithState,
    /// `torch._tensor._rebuild_from_type_v2`, which calls its first argument.
    RebuildFromTypeV2,
    /// `torch._utils._rebuild_sparse_tensor`.
    RebuildSparseTensor,
    /// `torch.serialization._get_layout`.
    GetLayout,
    /// `torch._utils._rebuild_qtensor`.
    RebuildQTensor,
    /// `torch._utils._rebuild_meta_tensor_no_storage`.
    RebuildMetaTensorNoStorage,
    /// `torch._utils._rebuild_device_tensor_from_cpu_tensor`.
    RebuildDeviceTensorFromCpuTensor,
    /// `torch._utils._rebuild_device_tensor_from_numpy`.
    RebuildDeviceTensorFromNumpy,
    /// `torch._utils._rebuild_nested_tensor`.
    RebuildNestedTensor,
    /// `torch._utils._rebuild_wrapper_subclass`, which makes an instance of its first argument.
    RebuildWrapperSubclass,
    /// `torch.Size`.
    Size,
    /// `torch.device`.
    Device,
    /// `torch.Tensor`.
    Tensor,
    /// A dtype, by torch's name: `float32`.
    Dtype(&'static str),
    /// `torch.FloatStorage` and its like, by the dtype: `float32`.
    Storage(&'static str),
    /// `torch.storage.TypedStorage`.
    TypedStorage,
    /// `torch.storage.UntypedStorage`.
    UntypedStorage,
    /// `torch.storage._load_from_bytes`, which unpickles its argument.
    LoadFromBytes,
    /// `torch.nn.parameter.Parameter`.
    Parameter,
    /// `torch.nn.parameter.Buffer`.
    Buffer,
    /// `torch.FloatTensor` and its like, by the dtype: `float32`.
    LegacyTensor(&'static str),
    /// A scheme of quantization, by its name: `per_tensor_affine`.
    QScheme(&'static str),
    /// `numpy.core.multiarray._reconstruct`.
    NumpyReconstruct,
    /// `numpy.core.multiarray.scalar`.
    NumpyScalar,
    /// `numpy.ndarray`.
    NdArray,
    /// `numpy.dtype`.
    NumpyDtype,
    /// `numpy.core.numeric._frombuffer`.
    NumpyFromBuffer,
    /// `_codecs.encode`: with protocol 2, bytes are text that it encodes.
    CodecsEncode,
    /// `builtins.set`.
    Set,
    /// `builtins.frozenset`.
    FrozenSet,
    /// `builtins.bytearray`.
    ByteArray,
    /// `builtins.complex`.
    Complex,
    /// `builtins.slice`.
    Slice,
    /// `builtins.range`.
    Range,
    /// A class of plain values: a path, a date, a configuration. It stays opaque.
    Value,
}

impl Known {
    /// Whether a call of it only makes what it says, of the arguments that are there: `ndarray` takes addresses of
    /// objects out of bytes, and is no more than the class that `_reconstruct` is told.
    #[must_use]
    pub const fn is_callable(self) -> bool {
        !matches!(self, Self::Dtype(_) | Self::QScheme(_) | Self::LoadFromBytes | Self::NdArray)
    }

    /// Whether it is a function, or a class that is as good as one, and no class of values.
    #[must_use]
    pub const fn is_function(self) -> bool {
        self.rebuilds()
            || matches!(
                self,
                Self::LoadFromBytes
                    | Self::GetLayout
                    | Self::CodecsEncode
                    | Self::NumpyReconstruct
                    | Self::NumpyScalar
                    | Self::NumpyFromBuffer
                    | Self::NdArray
            )
    }

    /// Whether it is one of torch's functions that make a tensor anew.
    #[must_use]
    pub const fn rebuilds(self) -> bool {
        matches!(
            self,
            Self::RebuildTensor
                | Self::RebuildTensorV2
                | Self::RebuildTensorV3
                | Self::RebuildParameter
                | Self::RebuildParameterWithState
                | Self::RebuildFromTypeV2
                | Self::RebuildSparseTensor
                | Self::RebuildQTensor
                | Self::RebuildMetaTensorNoStorage
                | Self::RebuildDeviceTensorFromCpuTensor
                | Self::RebuildDeviceTensorFromNumpy
                | Self::RebuildNestedTensor
                | Self::RebuildWrapperSubclass
        )
    }

    /// Whether what it makes is a dictionary, or of one of Python's classes of such.
    #[must_use]
    pub const fn is_dictionary(self) -> bool {
        matches!(self, Self::Dict | Self::OrderedDict | Self::DefaultDict | Self::Counter)
    }

    /// Whether what it makes is a mapping, on which `SETITEM` sets.
    #[must_use]
    pub const fn is_mapping(self) -> bool {
        self.is_dictionary() || matches!(self, Self::Value)
    }

    /// Whether what it makes can be extended by `APPEND`.
    #[must_use]
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Value)
    }

    /// Whether `ADDITEMS` can add to what it makes.
    #[must_use]
    pub const fn is_set(self) -> bool {
        matches!(self, Self::Set | Self::Value)
    }
}

/// What a name of a module means, if it is one of the table.
///
/// ```
/// use weigh_pickle::known::{Known, known};
///
/// assert_eq!(known("torch", "float32"), Some(Known::Dtype("float32")));
/// assert_eq!(known("torch", "hub.load"), None);
/// assert_eq!(known("os", "system"), None);
/// ```
#[must_use]
pub fn known(module: &str, name: &str) -> Option<Known> {
    find(module, name).map(KnownId::known)
}

/// A row of the table.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct KnownId {
    module: u8,
    row: u8,
}

impl KnownId {
    /// What is there.
    #[must_use]
    pub fn known(self) -> Known {
        // Ids are made by `find` alone.
        TABLE
            .get(usize::from(self.module))
            .and_then(|(_, rows)| rows.get(usize::from(self.row)))
            .map_or(Known::Value, |(_, known)| *known)
    }
}

pub(crate) fn find(module: &str, name: &str) -> Option<KnownId> {
    let place = TABLE.binary_search_by(|(known, _)| (*known).cmp(module)).ok()?;
    let (_, rows) = TABLE.get(place)?;
    let row = rows.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(KnownId { module: u8::try_from(place).ok()?, row: u8::try_from(row).ok()? })
}

/// Every name, with its module.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, Known)> {
    TABLE
        .iter()
        .flat_map(|(module, rows)| rows.iter().map(|(name, known)| (*module, *name, *known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_is_in_order_and_fits_its_ids() {
        assert!(TABLE.len() <= 256 && TABLE.is_sorted_by(|a, b| a.0 < b.0));
        for (module, rows) in TABLE {
            assert!(rows.len() <= 256 && rows.is_sorted_by(|a, b| a.0 < b.0), "{module}");
        }
        for (module, name, what) in all() {
            assert_eq!(known(module, name), Some(what), "{module}.{name}");
            assert!(!name.contains('.'), "{module}.{name}");
        }
    }

    #[test]
    fn a_name_is_known_as_a_whole_or_not_at_all() {
        for (module, name) in [
            ("torch", "FloatStorage.__init__"),
            ("torch", "load"),
            ("torch", "nn.parameter.Parameter"),
            ("torch.nn.parameter", "Parameter.data"),
            ("torch.nn.parameter", "parameter"),
            ("torch.storage", "_load_from_byte"),
            ("Torch", "Size"),
            ("", "torch.Size"),
            ("collections.OrderedDict", "fromkeys"),
            ("collections", "OrderedDict.fromkeys"),
            ("omegaconf", "OmegaConf"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("builtins", "type"),
            ("builtins", "object"),
            ("functools", "partial"),
            ("operator", "attrgetter"),
            ("copyreg", "_reconstructor"),
            ("numpy", "load"),
            ("__builtin__", "set"),
        ] {
            assert_eq!(known(module, name), None, "{module}.{name}");
        }
    }

    proptest! {
        #[test]
        fn names_outside_the_table_mean_nothing(
            module in "[a-z_.]{0,12}",
            name in "[A-Za-z_.]{0,12}",
            place in 0..10_000_usize,
            suffix in "[._a-zA-Z0-9]{1,4}",
        ) {
            prop_assert!(known(&module, &name).is_none() || all().any(|row| (row.0, row.1) == (&*module, &*name)));
            let rows: std::vec::Vec<_> = all().collect();
            let (module, name, _) = rows[place % rows.len()];
            let longer = std::format!("{name}{suffix}");
            prop_assert!(known(module, &longer).is_none() || all().any(|row| (row.0, row.1) == (module, &*longer)));
            let other = std::format!("{module}{suffix}");
            prop_assert!(known(&other, name).is_none());
        }
    }
}
