//! Low-rank adapters: which dialect of names, how many modules, which ranks.

use std::collections::{BTreeSet, HashMap};

use super::{Evidence, Extent, Trait, counted, shortened};
use crate::Item;
use crate::item::split;

/// How an adapter's two low-rank factors are named. In the order of the answers.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Dialect {
    Peft,
    PeftEmbedding,
    Kohya,
    UpDown,
    DiffusersProcessor,
}

impl Dialect {
    const ALL: [Self; 5] =
        [Self::Peft, Self::PeftEmbedding, Self::Kohya, Self::UpDown, Self::DiffusersProcessor];

    /// What follows the target's name, for the factor next to the input and for the other.
    const fn markers(self) -> [&'static str; 2] {
        match self {
            Self::Peft => [".lora_A", ".lora_B"],
            Self::PeftEmbedding => [".lora_embedding_A", ".lora_embedding_B"],
            Self::Kohya | Self::UpDown => [".lora_down", ".lora_up"],
            Self::DiffusersProcessor => ["_lora.down", "_lora.up"],
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Peft => "PEFT names (lora_A, lora_B)",
            Self::PeftEmbedding => "PEFT names (lora_embedding_A, lora_embedding_B)",
            Self::Kohya => "kohya names (lora_unet_… or lora_te…, lora_down, lora_up)",
            Self::UpDown => "lora_down and lora_up",
            Self::DiffusersProcessor => {
                "names of diffusers attention processors (_lora.down, _lora.up)"
            }
        }
    }
}

/// What a factor's name says. The two of a pair differ in `half` alone.
#[derive(Clone, Copy)]
struct Factor<'a> {
    dialect: Dialect,
    target: &'a str,
    rest: &'a str,
    /// 0 next to the input, 1 next to the output.
    half: usize,
}

impl<'a> Factor<'a> {
    fn of(name: &'a str) -> Option<Self> {
        // One quick search, which settles most names of most checkpoints.
        if !name.contains("lora") {
            return None;
        }
        Dialect::ALL.into_iter().find_map(|dialect| {
            dialect.markers().into_iter().enumerate().find_map(|(half, marker)| {
                let (target, rest) = name.rsplit_once(marker)?;
                let ends = rest.is_empty() || rest.starts_with('.');
                let kohya = target.starts_with("lora_unet_") || target.starts_with("lora_te");
                let fits = match dialect {
                    Dialect::Kohya => kohya,
                    Dialect::UpDown => !kohya,
                    _ => true,
                };
                (ends && fits).then_some(Self { dialect, target, rest, half })
            })
        })
    }

    /// The rank that the factor's shape says: `[rank, inputs, …]`, `[outputs, rank, …]`.
    fn rank(self, item: &Item<'_>) -> Option<u64> {
        let shape = item.shape.filter(|shape| shape.len() >= 2)?;
        shape.get(self.half).copied()
    }
}

/// The two factors of one target, as far as they are there, each with its rank.
#[derive(Default)]
struct Pair<'a> {
    factors: [Option<(&'a str, Option<u64>)>; 2],
}

impl Pair<'_> {
    /// The rank, if both factors say the same.
    fn rank(&self) -> Option<u64> {
        match self.factors {
            [Some((_, Some(one))), Some((_, Some(other)))] if one == other => Some(one),
            _ => None,
        }
    }
}

/// The adapters that the names spell.
pub(super) fn traits(items: &[Item<'_>]) -> Vec<Trait> {
    let mut others: Vec<(Evidence<'_>, BTreeSet<Option<&str>>)> = Vec::new();
    others.resize_with(OTHERS.len(), Default::default);
    for item in items {
        let (module, leaf) = split(item.name);
        // PEFT puts `.weight` after the component that tells.
        let component = match (leaf, module) {
            ("weight", Some(module)) => split(module).1,
            _ => leaf,
        };
        for ((evidence, modules), (_, _, components)) in others.iter_mut().zip(OTHERS) {
            if components.contains(&component) {
                evidence.add(item.name);
                modules.insert(module);
            }
        }
    }
    let mut traits: Vec<Trait> = loras(items);
    for ((evidence, modules), (code, what, _)) in others.into_iter().zip(OTHERS) {
        if evidence.count > 0 {
            let count = u64::try_from(modules.len()).unwrap_or(u64::MAX);
            traits.push(evidence.proves(code, format!("{what} of {}", counted(count, "module"))));
        }
    }
    traits
}

/// Adapters that are told by one component of a name: code, what it is, components.
const OTHERS: [(&str, &str, &[&str]); 3] = [
    ("dora", "DoRA magnitudes", &["lora_magnitude_vector", "dora_scale"]),
    ("loha", "LoHa adapter (Hadamard products)", &["hada_w1_a", "hada_w2_a"]),
    ("lokr", "LoKr adapter (Kronecker products)", &["lokr_w1", "lokr_w1_a"]),
];

fn loras(items: &[Item<'_>]) -> Vec<Trait> {
    let mut pairs: HashMap<(Dialect, &str, &str), Pair<'_>> = HashMap::new();
    let mut factors = Vec::new();
    for item in items {
        if let Some(factor) = Factor::of(item.name) {
            let key = (factor.dialect, factor.target, factor.rest);
            let pair = pairs.entry(key).or_default();
            if let Some(slot) = pair.factors.get_mut(factor.half) {
                *slot = Some((item.name, factor.rank(item)));
            }
            factors.push((key, item.name));
        }
    }
    let dialects = Dialect::ALL.into_iter();
    dialects.filter_map(|dialect| lora(dialect, &pairs, &factors)).collect()
}

type Key<'a> = (Dialect, &'a str, &'a str);

fn lora(
    dialect: Dialect,
    pairs: &HashMap<Key<'_>, Pair<'_>>,
    factors: &[(Key<'_>, &str)],
) -> Option<Trait> {
    let mut evidence = Evidence::default();
    let mut targets: BTreeSet<&str> = BTreeSet::new();
    let mut ranks = Vec::new();
    let mut unpaired = 0_u64;
    for &(key, name) in factors.iter().filter(|(key, _)| key.0 == dialect) {
        match pairs.get(&key).and_then(Pair::rank) {
            Some(rank) => {
                evidence.add(name);
                ranks.push(rank);
                targets.insert(key.1);
            }
            None => unpaired = unpaired.saturating_add(1),
        }
    }
    let ranks = Extent::of(ranks)?;
    let modules = u64::try_from(targets.len()).unwrap_or(u64::MAX);
    let mut text = format!(
        "LoRA adapter of {}, {} {}, {}",
        counted(modules, "module"),
        if ranks.least == ranks.most { "rank" } else { "ranks" },
        ranks.text(),
        dialect.text(),
    );
    if unpaired > 0 {
        text.push_str("; ");
        text.push_str(&counted(unpaired, "factor"));
        text.push_str(" without a partner of the same rank");
    }
    // Kohya writes underscores for dots, so its targets' last components are not to be had.
    let kinds: BTreeSet<&str> = targets.iter().map(|target| split(target).1).collect();
    if dialect != Dialect::Kohya && kinds.len() <= KINDS {
        let kinds: Vec<String> =
            kinds.into_iter().map(|kind| shortened(kind).into_owned()).collect();
        text.push_str(": ");
        text.push_str(&kinds.join(", "));
    }
    Some(evidence.proves("lora", text))
}

/// Most kinds of targets that are named.
const KINDS: usize = 12;
