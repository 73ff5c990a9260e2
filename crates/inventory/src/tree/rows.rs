//! The rows of a tree, in display order.

use weigh_format::Dtype;

use super::fold::first_component;
use super::{Fold, Label, Node, Part, Tree};
use crate::{DtypeSet, Item, Totals};

/// A line of a tree.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row<'t> {
    /// Levels of indentation: 0 at the top.
    pub depth: usize,
    /// What it is called, below the row it is in.
    pub label: Label<'t>,
    /// The full name of the tensor, or the module's without its last dot; of the first of folded ones.
    pub path: &'t str,
    /// Whether it is a module or a tensor.
    pub kind: RowKind,
    /// How many folded siblings it stands for; 1 if it stands for itself.
    pub count: u64,
    /// How many it stands for in the whole tree: `count` times that of each row it is in.
    pub copies: u64,
    /// What it holds, all copies together.
    pub totals: Totals,
    /// The dtypes it holds.
    pub dtypes: DtypeSet,
    /// A tensor's dtype, if known; a module's, if it holds one dtype alone.
    pub dtype: Option<Dtype>,
    /// A tensor's shape, if known.
    pub shape: Option<&'t [u64]>,
    /// Whether it is the last of its siblings.
    pub last: bool,
    /// Whether it is a module whose rows follow; false where the depth ends.
    pub open: bool,
    /// A number for this row that stays the same while the tree lives, whatever is shown.
    pub id: usize,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RowKind {
    /// A module: what the names below it have in common.
    Module,
    /// A tensor.
    Tensor,
}

/// The rows of a [`Tree`], in display order. See [`Tree::rows`].
#[derive(Clone, Debug)]
pub struct Rows<'t> {
    tree: &'t Tree<'t>,
    depth: usize,
    /// The modules that are open, outermost first.
    open: Vec<Level>,
    /// The node that is being shown.
    visit: Option<Visit<'t>>,
    /// Whether the last row opened the innermost module.
    entered: bool,
}

/// An open module.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The next node to show, hidden ones skipped; `end` if there is none.
    next: usize,
    /// One past the last node in the module.
    end: usize,
    /// How many modules this one stands for.
    copies: u64,
    /// Bytes of its path and the dot after it: where labels in it begin.
    path: usize,
}

/// A node that is being shown: a row for each of its tensors, and one for the module it is.
#[derive(Clone, Debug)]
struct Visit<'t> {
    number: usize,
    label: Label<'t>,
    path: &'t str,
    count: u64,
    copies: u64,
    last: bool,
    /// Which of the node's rows is next, and how many it has.
    row: usize,
    rows: usize,
}

impl<'t> Rows<'t> {
    pub(super) fn new(tree: &'t Tree<'t>, depth: Option<usize>) -> Self {
        let depth = depth.unwrap_or(usize::MAX);
        let mut rows = Self { tree, depth, open: Vec::new(), visit: None, entered: false };
        if rows.depth > 0 {
            rows.open_module(0, 1, 0);
        }
        rows
    }

    /// Leaves out what is in the module whose row came last, as if it were closed.
    ///
    /// Does nothing if that row was not an open module.
    pub fn close(&mut self) {
        if std::mem::take(&mut self.entered) {
            self.open.pop();
        }
    }

    fn open_module(&mut self, number: usize, copies: u64, path: usize) {
        let Some(node) = self.tree.nodes.get(number) else {
            return;
        };
        let end = number.saturating_add(node.size);
        let next = self.tree.next_shown(number.saturating_add(1), end);
        self.open.push(Level { next, end, copies, path });
    }

    /// Goes to the next node, out of the modules that have no more, and through those that hold
    /// nothing but one node.
    fn next_node(&mut self) -> Option<Visit<'t>> {
        while self.open.pop_if(|level| level.next >= level.end).is_some() {}
        let level = self.open.last_mut()?;
        let mut number = level.next;
        let mut node = self.tree.nodes.get(number)?;
        level.next = self.tree.next_shown(number.saturating_add(node.size), level.end);
        let last = level.next >= level.end;
        let mut path = level.path;
        let mut label = Label::default();
        let mut count = 1_u64;
        loop {
            count = count.saturating_mul(self.tree.name_node(node, &mut label));
            path = path.saturating_add(node.label.len());
            if node.own > 0 || node.shown != 1 {
                break;
            }
            number = self.tree.next_shown(number.saturating_add(1), usize::MAX);
            node = self.tree.nodes.get(number)?;
            path = path.saturating_add(1);
        }
        let copies = level.copies.saturating_mul(count);
        let name = self.tree.items.get(node.start).map_or("", |item| item.name);
        let path = name.get(..path).unwrap_or(name);
        let rows = node.own.saturating_add(usize::from(node.size > 1));
        Some(Visit { number, label, path, count, copies, last, row: 0, rows })
    }

    fn row(&mut self, visit: &mut Visit<'t>) -> Option<Row<'t>> {
        let node = self.tree.nodes.get(visit.number)?;
        let place = visit.row;
        visit.row = place.saturating_add(1);
        let depth = self.open.len().saturating_sub(1);
        let mut row = Row {
            depth,
            label: visit.label.clone(),
            path: visit.path,
            kind: RowKind::Tensor,
            count: visit.count,
            copies: visit.copies,
            totals: Totals::default(),
            dtypes: DtypeSet::EMPTY,
            dtype: None,
            shape: None,
            last: visit.last && visit.row >= visit.rows,
            open: false,
            id: node.start.saturating_add(place),
        };
        if let Some(item) = self.tree.own(node).get(place) {
            row.tensor(item);
        } else {
            row.module(node);
            // Tensors and modules are numbered apart.
            row.id = self.tree.items.len().saturating_add(visit.number);
            row.open = depth.saturating_add(1) < self.depth;
        }
        Some(row)
    }
}

impl<'t> Iterator for Rows<'t> {
    type Item = Row<'t>;

    fn next(&mut self) -> Option<Row<'t>> {
        let mut visit = match self.visit.take() {
            Some(visit) => visit,
            None => self.next_node()?,
        };
        let row = self.row(&mut visit)?;
        self.entered = row.open;
        if row.open {
            self.open_module(visit.number, visit.copies, visit.path.len().saturating_add(1));
        } else if visit.row < visit.rows {
            self.visit = Some(visit);
        }
        Some(row)
    }
}

impl<'t> Row<'t> {
    fn tensor(&mut self, item: &Item<'t>) {
        let mut totals = Totals::default();
        totals.add(item);
        self.totals = totals.times(self.copies);
        self.dtypes = item.dtype.into_iter().collect();
        self.dtype = item.dtype;
        self.shape = item.shape;
    }

    fn module(&mut self, node: &Node<'_>) {
        self.kind = RowKind::Module;
        self.totals = node.below.times(self.copies);
        self.dtypes = node.dtypes;
        self.dtype = node.dtypes.only();
    }
}

impl Tree<'_> {
    /// The first node of `from` and its later siblings that is shown, or `end`.
    fn next_shown(&self, from: usize, end: usize) -> usize {
        let mut number = from;
        while number < end
            && let Some(node) = self.nodes.get(number)
        {
            if !matches!(node.fold, Fold::Hidden) {
                return number;
            }
            number = number.saturating_add(node.size);
        }
        end
    }

    /// Adds what `node` is called to `label`, and says how many it stands for.
    fn name_node<'t>(&'t self, node: &Node<'t>, label: &mut Label<'t>) -> u64 {
        let indices = match node.fold {
            Fold::First(fold) => self.folds.get(fold),
            Fold::Single | Fold::Hidden => None,
        };
        let Some(indices) = indices else {
            label.parts.push(Part::Text(node.label));
            return 1;
        };
        label.parts.push(Part::Indices(indices));
        label.parts.extend(first_component(node.label).1.map(Part::Text));
        indices.count()
    }
}
