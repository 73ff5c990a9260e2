//! What a scan has seen so far.

use std::collections::HashMap;

use weigh_format::{Finding, Findings};
use weigh_pickle::{Error as PickleError, Limits, Program, Verdict, gadget};

use super::{Refused, SeenCall, SeenGlobal, SeenPickle, WeightsOnly};
use crate::torch::reading::{placed, placed_error};
use crate::torch::rules;

/// Pickles, names and calls that are listed; more are counted or in the findings.
const LISTED: usize = 1000;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The worst; `None` as long as nothing is a checkpoint.
    pub(super) verdict: Option<Verdict>,
    /// Whether something could not be read.
    pub(super) unread: bool,
    pub(super) pickles: Vec<SeenPickle>,
    pub(super) globals: Vec<SeenGlobal>,
    pub(super) calls: Vec<SeenCall>,
    pub(super) call_count: u64,
    pub(super) findings: Findings,
    pub(super) weights_only: Option<WeightsOnly>,
}

/// Where a pickle is: in a member, and from which byte on. No name is the file itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'m> {
    pub(super) member: &'m str,
    pub(super) start: u64,
}

impl At<'_> {
    pub(super) fn member(&self) -> Option<&str> {
        Some(self.member).filter(|member| !member.is_empty())
    }
}

impl Seen {
    /// Something in the file is a checkpoint, and comes to this.
    pub(super) fn comes_to(&mut self, verdict: Verdict) {
        self.verdict = Some(self.verdict.map_or(verdict, |other| other.with(verdict)));
    }

    pub(super) fn find(&mut self, finding: Finding, at: At<'_>) {
        self.findings.push(placed(finding, at.member(), at.start));
    }

    pub(super) fn find_all(&mut self, findings: &Findings, at: At<'_>) {
        for finding in findings.list() {
            self.find(finding.clone(), at);
        }
        // Those that were counted and not kept are counted here as well.
        for (rule, count) in findings.counts() {
            let of_rule = |finding: &&Finding| finding.rule.code == rule.code;
            let kept = findings.list().iter().filter(of_rule).count();
            for _ in u64::try_from(kept).unwrap_or(u64::MAX)..*count {
                self.findings
                    .report(rule, || placed(Finding::new(rule, "more of these"), at.member(), 0));
            }
        }
    }

    /// Something was not read to its end.
    pub(super) fn unreadable(&mut self, error: PickleError, at: At<'_>) {
        self.unread = true;
        self.comes_to(Verdict::Error);
        let error = placed_error(error, at.member(), at.start);
        let message = match error.opcode {
            Some(opcode) => format!("{opcode}: {}", error.message),
            None => error.message,
        };
        let mut finding = Finding::new(&rules::UNREADABLE, message).with("code", error.code);
        finding.place.member = error.member;
        if let Some(offset) = error.offset {
            finding = finding.at(offset..offset.saturating_add(1));
        }
        self.findings.push(finding);
    }

    /// Takes what a program says.
    pub(super) fn program(&mut self, program: &Program<'_>, at: At<'_>) {
        self.comes_to(program.verdict());
        self.find_all(&program.findings, at);
        let member = || at.member().map(String::from);
        if self.pickles.len() < LISTED {
            self.pickles.push(SeenPickle {
                member: member(),
                offset: at.start.saturating_add(program.start),
                len: program.len,
                protocol: program.protocol,
                opcodes: program.opcodes,
                verdict: program.verdict(),
            });
        }
        self.globals(program, at);
        for foreign in &program.foreign {
            self.call_count = self.call_count.saturating_add(1);
            if self.calls.len() >= LISTED {
                continue;
            }
            let callee = program.graph.global(foreign.callee);
            self.calls.push(SeenCall {
                member: member(),
                callee: callee.map(owned),
                kind: Some(foreign.kind),
                offset: at.start.saturating_add(foreign.offset),
                gadget: callee.is_some_and(|(module, name)| gadget::is_gadget(module, name)),
                depth: 0,
            });
        }
        for nested in &program.nested {
            self.call_count = self.call_count.saturating_add(nested.call_count);
            for callee in &nested.calls {
                if self.calls.len() < LISTED {
                    self.calls.push(SeenCall {
                        member: member(),
                        callee: callee.clone(),
                        kind: None,
                        offset: at.start.saturating_add(nested.offset),
                        gadget: callee
                            .as_ref()
                            .is_some_and(|(module, name)| gadget::is_gadget(module, name)),
                        depth: nested.depth,
                    });
                }
            }
        }
        if let Some(error) = &program.error {
            self.unreadable(error.clone(), at);
        }
    }

    fn globals(&mut self, program: &Program<'_>, at: At<'_>) {
        let mut places: HashMap<(&str, &str), usize> = HashMap::new();
        for global in &program.globals {
            let Some(name) = program.graph.global(global.node) else { continue };
            if let Some(seen) = places.get(&name).and_then(|place| self.globals.get_mut(*place)) {
                seen.count = seen.count.saturating_add(1);
                continue;
            }
            if self.globals.len() >= LISTED {
                continue;
            }
            places.insert(name, self.globals.len());
            let (module, name) = owned(name);
            self.globals.push(SeenGlobal {
                member: at.member().map(String::from),
                module,
                name,
                offset: at.start.saturating_add(global.offset),
                count: 1,
                known: program.graph.known(global.node).is_some(),
                depth: 0,
            });
        }
        for nested in &program.nested {
            for (module, name) in &nested.globals {
                if self.globals.len() < LISTED {
                    self.globals.push(SeenGlobal {
                        member: at.member().map(String::from),
                        module: module.clone(),
                        name: name.clone(),
                        offset: at.start.saturating_add(nested.offset),
                        count: 1,
                        known: false,
                        depth: nested.depth,
                    });
                }
            }
        }
    }

    /// What `torch.load(weights_only=True)` makes of the next pickle of the file that it reads.
    pub(super) fn weights_only(&mut self, bytes: &[u8], limits: &Limits, at: At<'_>) {
        if matches!(self.weights_only, Some(WeightsOnly::Refused(_))) {
            return;
        }
        self.weights_only = Some(match weigh_pickle::weights_only(bytes, limits) {
            Ok(_) => WeightsOnly::Taken,
            Err(refusal) => WeightsOnly::Refused(Box::new(Refused {
                member: at.member().map(String::from),
                offset: Some(at.start.saturating_add(refusal.offset)),
                opcode: refusal.opcode.map(weigh_pickle::opcode::Opcode::name),
                name: refusal.name,
                reason: refusal.reason.into_owned(),
            })),
        });
    }

    /// Whether some pickle names this.
    pub(super) fn names(&self, (module, name): (&str, &str)) -> bool {
        self.globals.iter().any(|global| global.module == module && global.name == name)
    }

    /// `torch.load(weights_only=True)` does not take the file, whatever its pickles say.
    pub(super) fn not_for_torch(&mut self, reason: impl Into<String>) {
        if !matches!(self.weights_only, Some(WeightsOnly::Refused(_))) {
            self.weights_only = Some(WeightsOnly::Refused(Box::new(Refused {
                member: None,
                offset: None,
                opcode: None,
                name: None,
                reason: reason.into(),
            })));
        }
    }
}

fn owned((module, name): (&str, &str)) -> (String, String) {
    let short = |text: &str| weigh_format::text::shortened(text).into_owned();
    (short(module), short(name))
}
