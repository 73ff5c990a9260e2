//! Where the state dict is.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use weigh_format::text::shortened;

use super::entries::{Step, entries, is_mapping, is_module};
use super::{Source, Walk, Why};
use crate::Error;
use crate::graph::NodeId;

/// Keys under which a checkpoint has its state dict.
const HOLDERS: &[&str] =
    &["state_dict", "model_state_dict", "model", "module", "net", "ema", "weights", "params"];

/// Keys under which a checkpoint has what is needed only to train on.
const TRAINING: &[&str] = &[
    "optimizer",
    "optimizers",
    "optimizer_state",
    "optimizer_states",
    "optimizer_state_dict",
    "optimizer_states_dict",
    "optim",
    "optim_state_dict",
    "scheduler",
    "schedulers",
    "scheduler_state_dict",
    "lr_scheduler",
    "lr_schedulers",
    "lr_scheduler_state_dict",
    "grad_scaler",
    "scaler",
    "rng_state",
    "rng_states",
    "random_state",
    "callbacks",
    "loops",
];

impl Walk<'_, '_> {
    /// The node that names begin at.
    pub(super) fn find(&mut self, root: NodeId) -> Result<NodeId, Error> {
        if let Some(key) = self.options.key {
            return self.asked(root, key);
        }
        if self.options.all || !is_mapping(self.graph, root) {
            return Ok(root);
        }
        let Some(entries) = entries(self.graph, &mut self.keys, root) else {
            return Ok(root);
        };
        let mut found: Vec<(&'static str, NodeId)> = Vec::new();
        for (step, node) in &entries {
            let Step::Text(key) = step else {
                continue;
            };
            let holder = HOLDERS.iter().find(|holder| *holder == key);
            if let Some(holder) = holder
                && self.reach.leads_to_wanted(*node)
                && (is_mapping(self.graph, *node) || is_module(self.graph, *node))
            {
                found.push((*holder, *node));
            }
        }
        self.state.candidates = found.iter().map(|(key, _)| *key).collect();
        let [(key, node)] = found.as_slice() else {
            self.skip = Some(TRAINING);
            return Ok(root);
        };
        self.state.source = Source::Found(key);
        for (step, other) in entries {
            if step == Step::Text(key) {
                continue;
            }
            let why = if !self.reach.leads_to_wanted(other) {
                Why::NoTensor(super::kind(self.graph, other))
            } else if matches!(step, Step::Text(key) if TRAINING.contains(&key)) {
                Why::Optimizer
            } else {
                Why::Beside
            };
            self.leave_out(step, other, why);
        }
        self.prefix.push(Step::Text(key));
        Ok(*node)
    }

    /// The node at a key that was asked for: the whole text is one key, or it is keys with dots between.
    fn asked(&mut self, root: NodeId, key: &str) -> Result<NodeId, Error> {
        self.state.source = Source::Asked(key.to_owned());
        let mut node = root;
        let mut rest = key;
        while !rest.is_empty() {
            let entries = entries(self.graph, &mut self.keys, node).unwrap_or_default();
            // The longest key that the rest begins with.
            let taken = entries
                .iter()
                .filter_map(|(step, value)| {
                    let mut name = alloc::string::String::new();
                    step.push_to(self.graph, &mut name);
                    let after = rest.strip_prefix(name.as_str())?;
                    let after = if after.is_empty() {
                        after
                    } else {
                        after.strip_prefix('.').filter(|it| !it.is_empty())?
                    };
                    (!matches!(step, Step::Nameless(_))).then_some((*step, *value, after))
                })
                .min_by_key(|(_, _, after)| after.len());
            let Some((step, value, after)) = taken else {
                return Err(Error::new(
                    "state-key-missing",
                    format!("there is no {} at {}", shortened(rest), self.path()),
                ));
            };
            self.prefix.push(step);
            node = value;
            rest = after;
        }
        if !self.reach.leads_to_wanted(node) && !self.is_empty_mapping(node) {
            return Err(Error::new(
                "state-no-tensor",
                format!("{} is {}, without a tensor", self.path(), super::kind(self.graph, node)),
            ));
        }
        Ok(node)
    }
}
