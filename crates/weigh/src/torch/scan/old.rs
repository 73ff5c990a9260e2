//! Torch's older files, a stream and a tar archive, and other tar archives.

use weigh_pickle::container::{legacy, tar, torch_tar};

use super::engine::Scan;
use super::seen::At;
use crate::torch::reading::{Fault, Reading, joined};
use crate::torch::sizes;

impl Scan<'_> {
    pub(super) fn legacy(
        &mut self,
        reading: &mut Reading<'_>,
        stream: &legacy::Stream,
        at: At<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        let limits = &self.options.limits;
        let mut stored = sizes::Sizes::new();
        for span in &stream.pickles {
            let inner = At { start: at.start.saturating_add(span.start), ..at };
            let bytes = reading.bytes(span.clone())?;
            let program = weigh_pickle::run(bytes, limits);
            self.seen.program(&program, inner);
            if depth == 0 {
                self.seen.weights_only(bytes, limits, inner);
            }
            if *span == stream.object {
                stored = sizes::of(&program);
            }
        }
        if let Some(error) = &stream.error {
            if !self.seen.unread {
                self.seen.unreadable(error.clone(), at);
            }
            return Ok(());
        }
        let found = reading.ask(|spans| stream.storages(spans, |key| stored.get(key).copied()))?;
        self.seen.find_all(&found.findings, at);
        let end = found.by_key.values().map(|span| span.end).fold(stream.end, u64::max);
        if end < reading.len() {
            let mut tail = reading.window(end..reading.len(), limits)?;
            let member = joined(at.member, Some("(after the last storage)"));
            self.part(&mut tail, "", &member, depth.saturating_add(1))?;
        }
        Ok(())
    }

    pub(super) fn torch_tar(
        &mut self,
        reading: &mut Reading<'_>,
        archive: &tar::Archive,
        at: At<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        let limits = &self.options.limits;
        let mut walk = torch_tar::Walk::new(archive);
        reading.go_on(|spans| walk.go(spans, limits, sizes::of_class))?;
        let checkpoint = walk.finish();
        for span in &checkpoint.pickles {
            let bytes = reading.bytes(span.clone())?;
            let program = weigh_pickle::run(bytes, limits);
            let inner = At { start: at.start.saturating_add(span.start), ..at };
            self.seen.program(&program, inner);
        }
        if let Some(error) = checkpoint.error.filter(|_| !self.seen.unread) {
            self.seen.unreadable(error, at);
        }
        if depth == 0 {
            self.seen.not_for_torch("it is a tar archive, which weights_only does not take");
        }
        // All others, and the object: whatever it looks like, torch takes it for a pickle.
        let done = |name: &str| ["sys_info", "storages", "tensors"].contains(&name);
        let (objects, others): (Vec<_>, Vec<_>) = archive
            .members
            .iter()
            .filter(|member| !done(member.name.trim_start_matches("./")))
            .cloned()
            .partition(|member| member.name.trim_start_matches("./") == "pickle");
        for object in objects {
            let member = joined(at.member, Some(&object.name));
            let mut window = reading.window(object.span.clone(), limits)?;
            let len = window.len();
            self.pickles(&mut window, 0..len, At { member: &member, start: 0 })?;
        }
        self.tar(reading, &others, at, depth)
    }

    pub(super) fn tar(
        &mut self,
        reading: &mut Reading<'_>,
        members: &[tar::Member],
        at: At<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        for found in members {
            let member = joined(at.member, Some(&found.name));
            let mut window = reading.window(found.span.clone(), &self.options.limits)?;
            self.part(&mut window, &found.name, &member, depth.saturating_add(1))?;
        }
        Ok(())
    }
}
