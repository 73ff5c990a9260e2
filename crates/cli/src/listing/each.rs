//! The frame of the commands that look at tensors.

use anyhow::Result;
use weigh::Survey;

use super::{Meant, by_flags};
use crate::args::{Paths, Select};
use crate::json::Document;
use crate::session::Session;

/// Lets `look` show each checkpoint and tell whether no tensor was meant, then reports on it.
///
/// With a schema there is a document of it, which `look` writes the checkpoint to.
pub(crate) fn each_meant(
    session: &mut Session,
    paths: &Paths,
    select: &Select,
    schema: Option<&str>,
    mut look: impl FnMut(&mut Session, Option<&mut Document>, &Survey, &Meant<'_>) -> Result<bool>,
) -> Result<()> {
    let begin = |schema| Document::begin(&mut session.output, schema);
    let mut document = schema.map(begin).transpose()?;
    let flags = match by_flags(select) {
        Ok(flags) => flags,
        Err(failure) => {
            session.failed(failure);
            return Ok(document.map_or(Ok(()), |document| document.end(session))?);
        }
    };
    session.lists_torch = true;
    session.each_survey(&paths.paths, |session, survey, selector| {
        let meant = match Meant::new(&flags, survey.path(), selector) {
            Ok(meant) => meant,
            Err(failure) => {
                session.failed(failure);
                return Ok(());
            }
        };
        let is_none = look(session, document.as_mut(), survey, &meant)?;
        meant.report(session, survey, select, is_none);
        session.report_listing(survey);
        Ok(())
    })?;
    Ok(document.map_or(Ok(()), |document| document.end(session))?)
}
