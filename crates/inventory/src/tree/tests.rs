use std::collections::HashSet;
use std::time::Instant;

use proptest::prelude::*;
use weigh_format::Dtype;

use super::*;

fn item<'a>(name: &'a str, shape: &'a [u64]) -> Item<'a> {
    Item {
        name,
        dtype: Some(Dtype::F32),
        shape: Some(shape),
        bytes: 4 * shape.iter().product::<u64>(),
    }
}

/// A row a line: indentation, label, count if folded, tensors, elements.
fn drawn(tree: &Tree<'_>, depth: Option<usize>) -> Vec<String> {
    let line = |row: Row<'_>| {
        let slash = if row.kind == RowKind::Module { "/" } else { "" };
        let count = if row.count > 1 { format!(" ×{}", row.count) } else { String::new() };
        let Totals { tensors, elements, .. } = row.totals;
        format!("{:1$}{2}{slash}{count} {tensors} {elements}", "", row.depth, row.label)
    };
    tree.rows(depth).map(line).collect()
}

fn draw(names: &[&str]) -> Vec<String> {
    drawn(&Tree::build(names.iter().map(|name| item(name, &[2]))), None)
}

#[test]
fn a_decoder_folds_its_layers() {
    let mut names = vec!["lm_head.weight".to_string(), "model.embed_tokens.weight".into()];
    for layer in 0..12 {
        names.push(format!("model.layers.{layer}.input_layernorm.weight"));
        for projection in ["q_proj.weight", "k_proj.weight", "k_proj.bias"] {
            names.push(format!("model.layers.{layer}.self_attn.{projection}"));
        }
    }
    names.push("model.norm.weight".into());
    let tree = Tree::build(names.iter().map(|name| item(name, &[2, 5])));
    let want = [
        "lm_head.weight 1 10",
        "model/ 50 500",
        " embed_tokens.weight 1 10",
        " layers.[0..11]/ ×12 48 480",
        "  input_layernorm.weight 12 120",
        "  self_attn/ 36 360",
        "   k_proj/ 24 240",
        "    bias 12 120",
        "    weight 12 120",
        "   q_proj.weight 12 120",
        " norm.weight 1 10",
    ];
    assert_eq!(drawn(&tree, None), want);
    assert_eq!(drawn(&tree, Some(0)), [""; 0]);
    assert_eq!(drawn(&tree, Some(1)), want[..2]);
    assert_eq!(drawn(&tree, Some(2)), [&want[..4], &want[10..]].concat());
    let rows: Vec<Row<'_>> = tree.rows(Some(3)).collect();
    assert_eq!((rows[3].path, rows[3].copies, rows[3].open), ("model.layers.0", 12, true));
    assert_eq!(
        (rows[5].path, rows[5].copies, rows[5].open),
        ("model.layers.0.self_attn", 12, false)
    );
    assert_eq!((rows[4].dtype, rows[4].shape), (Some(Dtype::F32), Some(&[2, 5][..])));
    assert_eq!(
        (rows[3].dtype, rows[3].shape, rows[3].totals.bytes),
        (Some(Dtype::F32), None, 1920)
    );
    assert_eq!(tree.totals().tensors, 51);
}

#[test]
fn only_what_is_equal_all_the_way_down_folds() {
    for (case, names, want) in [
        ("gap", &["0.w", "2.w", "5.w", "6.w", "7.w"][..], &["[0, 2, 5..7].w ×5 5 10"][..]),
        ("tensors", &["p.0", "p.1"], &["p.[0..1] ×2 2 4"]),
        ("one", &["a.0.w"], &["a.0.w 1 2"]),
        ("labels", &["0.w", "1.v"], &["0.w 1 2", "1.v 1 2"]),
        ("below", &["0.a.w", "1.a.w", "1.a.v"], &["0.a.w 1 2", "1.a/ 2 4", " v 1 2", " w 1 2"]),
        ("zeros", &["0.w", "1.w", "01.w"], &["[0..1].w ×2 2 4", "01.w 1 2"]),
        ("names", &["a.w", "b.w"], &["a.w 1 2", "b.w 1 2"]),
        ("nested", &["0.0.w", "0.1.w", "1.0.w", "1.1.w"], &["[0..1].[0..1].w ×4 4 8"]),
        ("both", &["0", "0.w", "1", "1.w"], &["[0..1] ×2 2 4", "[0..1]/ ×2 2 4", " w 2 4"]),
        ("unlike", &["0", "1.w", "2", "2.w"], &["0 1 2", "1.w 1 2", "2 1 2", "2/ 1 2", " w 1 2"]),
        ("kinds", &["0.m", "1.a", "2.m", "3.a", "4.m"], &["[0, 2, 4].m ×3 3 6", "[1, 3].a ×2 2 4"]),
    ] {
        assert_eq!(draw(names), want, "{case}");
    }
}

#[test]
fn dtypes_shapes_and_bytes_keep_apart() {
    let base = item("0.w", &[2, 3]);
    for (other, equal) in [
        (base, true),
        (Item { shape: Some(&[3, 2]), ..base }, false),
        (Item { shape: None, ..base }, false),
        (Item { dtype: Some(Dtype::I32), ..base }, false),
        (Item { dtype: None, ..base }, false),
        (Item { bytes: 23, ..base }, false),
    ] {
        let rows = Tree::build([base, Item { name: "1.w", ..other }]).rows(None).count();
        assert_eq!(rows == 1, equal, "{other:?}");
    }
}

#[test]
fn odd_names_have_rows_of_their_own() {
    for (names, want) in [
        (&[][..], &[][..]),
        (&[""], &[" 1 2"]),
        (&["", "."], &[" 1 2", "/ 1 2", "  1 2"]),
        (&["a", "a.b"], &["a 1 2", "a/ 1 2", " b 1 2"]),
        (&["a", "a."], &["a 1 2", "a/ 1 2", "  1 2"]),
        (&["a..b", "a.b"], &["a/ 2 4", " .b 1 2", " b 1 2"]),
        (&["a", "a"], &["a 1 2", "a 1 2"]),
        (&[".."], &[".. 1 2"]),
        (&["0", "0", "1", "1"], &["[0..1] ×2 2 4", "[0..1] ×2 2 4"]),
    ] {
        assert_eq!(draw(names), want, "{names:?}");
    }
}

#[test]
fn a_closed_module_is_passed_over() {
    let tree = Tree::build(["a.b.x", "a.b.y", "a.c", "d"].map(|name| item(name, &[])));
    let mut rows = tree.rows(None);
    let mut seen = Vec::new();
    while let Some(row) = rows.next() {
        seen.push(row.path);
        if row.path != "a" {
            rows.close();
            rows.close();
        }
    }
    assert_eq!(seen, ["a", "a.b", "a.c", "d"]);
}

#[test]
fn an_unfolded_tree_shows_every_sibling() {
    let items = ["0.a", "0.b", "1.a", "1.b"].map(|name| item(name, &[]));
    assert_eq!(Tree::unfolded(items).rows(None).count(), 6);
    assert_eq!(Tree::build(items).rows(None).count(), 3);
}

#[test]
fn hostile_names_cost_no_more_than_their_bytes() {
    let nines = "9".repeat(1000);
    let deep: Vec<String> = (1..600).map(|n| "0.".repeat(n)).collect();
    let long: Vec<String> = (0..200).map(|n| format!("{}{n}", ".".repeat(50_000))).collect();
    let wide: Vec<String> = (0..200_000).map(|n| format!("{n}.{nines:.20}.{n}")).collect();
    for names in [deep, long, wide] {
        let start = Instant::now();
        let tree = Tree::build(names.iter().map(|name| item(name, &[1])));
        let tensors = tree.rows(None).filter(|row| row.kind == RowKind::Tensor);
        assert_eq!(tensors.fold(0, |sum, row| sum + row.count), tree.totals().tensors);
        assert!(start.elapsed().as_secs() < 20, "{} names", names.len());
    }
}

/// Every name that a row's label stands for, below `prefixes`.
fn spelled(label: &Label<'_>, prefixes: &[String]) -> Vec<String> {
    let mut names = prefixes.to_vec();
    for part in label.parts() {
        let each: Vec<String> = match part {
            Part::Text(text) => vec![(*text).to_owned()],
            Part::Indices(indices) => {
                indices.runs().iter().cloned().flatten().map(|index| index.to_string()).collect()
            }
        };
        names =
            names.iter().flat_map(|name| each.iter().map(move |e| format!("{name}{e}."))).collect();
    }
    names
}

proptest! {
    #[test]
    fn rows_spell_every_name_and_add_up(
        names in prop::collection::vec("[0-2a]{0,1}(\\.[0-2a]{0,1}){0,4}", 0..60),
        fold in any::<bool>(),
    ) {
        let items = names.iter().map(|name| item(name, &[3]));
        let tree = if fold { Tree::build(items) } else { Tree::unfolded(items) };
        let mut found = Vec::new();
        let mut prefixes: Vec<Vec<String>> = vec![vec![String::new()]];
        let mut sums = vec![Totals::default()];
        let mut of_modules: Vec<Totals> = vec![tree.totals()];
        let mut ids = HashSet::new();
        for row in tree.rows(None) {
            while sums.len() > row.depth + 1 {
                prop_assert_eq!(sums.pop(), of_modules.pop());
            }
            sums[row.depth] = sums[row.depth].and(row.totals);
            prefixes.truncate(row.depth + 1);
            let spelled = spelled(&row.label, &prefixes[row.depth]);
            prop_assert_eq!(u64::try_from(spelled.len()).unwrap(), row.copies);
            prop_assert_eq!(format!("{}.", row.path), spelled[0].clone());
            prop_assert!(ids.insert(row.id));
            if row.kind == RowKind::Module {
                prefixes.push(spelled);
                sums.push(Totals::default());
                of_modules.push(row.totals);
            } else {
                found.extend(spelled);
            }
        }
        while let Some(sum) = sums.pop() {
            prop_assert_eq!(Some(sum), of_modules.pop());
        }
        let mut want: Vec<String> = names.iter().map(|name| format!("{name}.")).collect();
        want.sort();
        found.sort();
        prop_assert_eq!(found, want);
        prop_assert_eq!(tree.totals().tensors, u64::try_from(names.len()).unwrap());
    }

    #[test]
    fn guides_agree_with_the_rows_that_follow(
        names in prop::collection::vec("[ab](\\.[ab]){0,3}", 0..12),
    ) {
        let tree = Tree::build(names.iter().map(|name| item(name, &[])));
        let rows: Vec<Row<'_>> = tree.rows(None).collect();
        let mut guides = Guides::default();
        for (place, row) in rows.iter().enumerate() {
            let flags = guides.step(row);
            prop_assert_eq!(flags.len(), row.depth + 1);
            for (depth, last) in flags.iter().enumerate() {
                let later = rows[place + 1..].iter().take_while(|next| next.depth >= depth);
                let goes_on = later.into_iter().any(|next| next.depth == depth);
                prop_assert_eq!(*last, !goes_on);
            }
        }
    }
}
