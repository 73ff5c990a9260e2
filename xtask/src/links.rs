//! Checks that the links of Markdown files lead somewhere, without a network.
//!
//! Looked at are inline links and images, reference definitions, and the `href`
//! and `src` of HTML, outside of code. A relative target must be a file or folder
//! of the repository; its `#anchor`, in a Markdown file, a heading of that file
//! (the `#` kind, named as the large forges name it) or an `id` or `name` in its
//! HTML. Targets with a scheme, such as `https:`, are left alone.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use crate::files;

/// Says which links of the Markdown files under a folder lead nowhere.
///
/// # Errors
///
/// When a file or folder cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in files::with_extension(root, "md")? {
        let shown = file.strip_prefix(root).unwrap_or(&file).display();
        for (line, target) in links(&files::text(&file)?) {
            if let Some(fault) = fault(root, &file, &target)? {
                faults.push(format!("{shown}:{line}: {target}: {fault}"));
            }
        }
    }
    Ok(faults)
}

/// What is wrong with one link, if anything is.
fn fault(root: &Path, from: &Path, target: &str) -> Result<Option<String>> {
    if has_scheme(target) {
        return Ok(None);
    }
    if target.starts_with('/') {
        return Ok(Some("begins with `/`, which is another place on every host".to_owned()));
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let file = if path.is_empty() {
        from.to_path_buf()
    } else {
        let folder = from.parent().unwrap_or(root);
        match resolved(&folder.join(path)) {
            Some(file) if file.starts_with(root) => file,
            _ => return Ok(Some("leaves the repository".to_owned())),
        }
    };
    let shown = file.strip_prefix(root).unwrap_or(&file).display();
    if !file.exists() {
        return Ok(Some(format!("there is no {shown}")));
    }
    if let Some(anchor) = anchor
        && is_markdown(&file)
        && !anchors(&files::text(&file)?).contains(anchor)
    {
        return Ok(Some(format!("{shown} has no heading #{anchor}")));
    }
    Ok(None)
}

/// Whether a target names another place than a file: `https:`, `mailto:`.
fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// A path with its `.` and `..` taken out; `None` if it climbs over the root.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !result.pop() {
                    return None;
                }
            }
            other => result.push(other),
        }
    }
    Some(result)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The targets of a text's links, with their lines counted from 1.
fn links(text: &str) -> Vec<(usize, String)> {
    let text = without_code_spans(&without_fences(text));
    let mut found = Vec::new();
    let mut add = |offset: usize, target: &str| {
        if !target.is_empty() {
            let line = text[..offset].matches('\n').count() + 1;
            found.push((line, target.to_owned()));
        }
    };
    for (offset, mark) in text.match_indices("](") {
        add(offset, destination(&text[offset + mark.len()..]));
    }
    for mark in ["href=\"", "src=\""] {
        for (offset, _) in text.match_indices(mark) {
            add(offset, text[offset + mark.len()..].split('"').next().unwrap_or_default());
        }
    }
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let is_definition = line.starts_with('[') && !line.starts_with("[^");
        if let Some((_, rest)) = line.split_once("]:")
            && is_definition
        {
            add(offset, destination(rest.trim_start()));
        }
        offset += line.len();
    }
    found.sort();
    found
}

/// The target at the start of a text: in `<…>`, or up to white space or the
/// parenthesis that closes the link.
fn destination(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('<') {
        return rest.split('>').next().unwrap_or_default();
    }
    let mut depth = 0_usize;
    let end = text.find(|c: char| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' if depth > 0 => {
            depth -= 1;
            false
        }
        ')' => true,
        other => other.is_whitespace(),
    });
    &text[..end.unwrap_or(text.len())]
}

/// The anchors that a Markdown text offers.
fn anchors(text: &str) -> HashSet<String> {
    let text = without_fences(text);
    let mut anchors = HashSet::new();
    for line in text.lines() {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if (1..=6).contains(&level) && heading.starts_with(' ') {
            let slug = slug(heading.trim().trim_end_matches('#').trim_end());
            let mut unique = slug.clone();
            let mut repeat = 0;
            while !anchors.insert(unique.clone()) {
                repeat += 1;
                unique = format!("{slug}-{repeat}");
            }
        }
    }
    for mark in ["id=\"", "name=\""] {
        for (offset, _) in text.match_indices(mark) {
            let value = text[offset + mark.len()..].split('"').next().unwrap_or_default();
            anchors.insert(value.to_owned());
        }
    }
    anchors
}

/// The anchor of a heading: lower case, spaces as hyphens, no punctuation.
fn slug(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        let target = destination(after);
        rest = after[target.len()..].strip_prefix(')').unwrap_or_default();
    }
    shown.push_str(rest);
    shown
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// A text with its fenced blocks emptied, line for line.
fn without_fences(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let fence = fence(line);
        match (open, fence) {
            (None, None) => result.push_str(line),
            (None, Some(mark)) => open = Some(mark),
            (Some(opening), Some(mark)) => {
                let closes = mark.starts_with(opening) && line.trim() == mark;
                if closes {
                    open = None;
                }
            }
            (Some(_), None) => {}
        }
        result.push('\n');
    }
    result
}

/// The run of backticks or tildes with which a line opens or closes a block.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ['`', '~'].iter().find_map(|&mark| {
        let length = line.len() - line.trim_start_matches(mark).len();
        (length >= 3).then(|| &line[..length])
    })
}

/// A text with its code spans blanked, byte for byte.
fn without_code_spans(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let length = rest.len() - start - rest[start..].trim_start_matches('`').len();
        let inside = start + length;
        result.push_str(&rest[..start]);
        if let Some(end) = span_end(&rest[inside..], length) {
            let span = &rest[start..inside + end];
            result.extend(span.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
            rest = &rest[inside + end..];
        } else {
            result.push_str(&rest[start..inside]);
            rest = &rest[inside..];
        }
    }
    result.push_str(rest);
    result
}

/// Where a code span ends: after the next run of exactly `length` backticks in
/// the same paragraph.
fn span_end(text: &str, length: usize) -> Option<usize> {
    let paragraph = text.find("\n\n").map_or(text, |end| &text[..end]);
    let mut from = 0;
    while let Some(start) = paragraph[from..].find('`').map(|at| from + at) {
        let run = paragraph.len() - start - paragraph[start..].trim_start_matches('`').len();
        from = start + run;
        if run == length {
            return Some(from);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn links_are_found_where_they_are_links() {
        for (text, want) in [
            ("[a](b.md)", &[(1, "b.md")][..]),
            ("x\n[a\nb](c.md \"title\") ![d](e.png)", &[(3, "c.md"), (3, "e.png")]),
            ("[a](<b c.md>)", &[(1, "b c.md")]),
            ("[a](b_(c).md)", &[(1, "b_(c).md")]),
            ("[ref]: d.md\n[^note]: e.md", &[(1, "d.md")]),
            ("<img src=\"i.png\"> <a href=\"j.md\">j</a>", &[(1, "i.png"), (1, "j.md")]),
            ("`[a](b.md)` and ``[a](b.md) ` ``", &[]),
            ("a ` alone, then [a](b.md)", &[(1, "b.md")]),
            ("```text\n[a](b.md)\n```\n[c](d.md)", &[(4, "d.md")]),
            ("````\n```\n[a](b.md)\n````\n[c](d.md)", &[(5, "d.md")]),
            ("é `ü` [a](b.md)", &[(1, "b.md")]),
        ] {
            let want: Vec<(usize, String)> =
                want.iter().map(|&(line, target)| (line, target.to_owned())).collect();
            assert_eq!(links(text), want, "{text:?}");
        }
    }

    #[test]
    fn headings_are_anchors() {
        let text = "# The `weigh ls` verb, twice!\n## Again\n## Again\n### See [x](y.md) #\n\
                    #hashtag\n```\n# not\n```\n<a id=\"mine\"></a>\n";
        let mut got: Vec<String> = anchors(text).into_iter().collect();
        got.sort();
        assert_eq!(got, ["again", "again-1", "mine", "see-x", "the-weigh-ls-verb-twice"]);
    }

    #[test]
    fn every_way_to_lead_nowhere_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("docs/inner")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::write(root.join("target/made.md"), "[a](nowhere.md)").unwrap();
        fs::write(root.join("README.md"), "# Top\n[a](docs/guide.md#part-one) [b](docs)\n")
            .unwrap();
        fs::write(
            root.join("docs/guide.md"),
            "# Part one\n[a](../README.md#top) [b](#part-one) [c](https://example.org/x)\n\
             [d](absent.md)\n[e](../README.md#absent)\n[f](#absent)\n[g](../../out.md)\n[h](/README.md)\n",
        )
        .unwrap();
        let guide = Path::new("docs").join("guide.md");
        let guide = guide.display();
        let absent = Path::new("docs").join("absent.md");
        assert_eq!(
            check(root).unwrap(),
            [
                format!("{guide}:3: absent.md: there is no {}", absent.display()),
                format!("{guide}:4: ../README.md#absent: README.md has no heading #absent"),
                format!("{guide}:5: #absent: {guide} has no heading #absent"),
                format!("{guide}:6: ../../out.md: leaves the repository"),
                format!(
                    "{guide}:7: /README.md: begins with `/`, which is another place on every host"
                ),
            ]
        );
    }
}
