//! The path of a field as a story writes it, `spec.template.spec.containers[0].image` or
//! `metadata.labels[example.com/team]`, and putting a value there.

use whittle_cluster::yaml::{Data, Path, Segment, Yaml};

/// The steps of a path.
///
/// # Errors
/// When a bracket is not closed or a step is empty.
pub fn parse(text: &str) -> Result<Path, String> {
    let wrong = || format!("{text:?} is no path; write it like spec.limits.cpu, containers[0].image or labels[example.com/team]");
    let mut segments = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (key, after) = inside.split_once(']').ok_or_else(wrong)?;
            segments.push(key.parse().map_or_else(|_| Segment::Key(key.trim_matches(['"', '\'']).to_owned()), Segment::Index));
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return Err(wrong());
            }
            segments.push(Segment::Key(rest[..end].to_owned()));
            rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
        }
    }
    if segments.is_empty() { Err(wrong()) } else { Ok(segments.into()) }
}

/// Puts `value` at `path`, making the mappings on the way.
///
/// # Errors
/// When a step goes into something that has no such place.
pub fn put(root: &mut Yaml, path: &Path, value: Yaml) -> Result<(), String> {
    let Some((last, way)) = path.segments().split_last() else { return Err("the path is empty".to_owned()) };
    let mut at = root;
    for step in way {
        at = below(at, step).ok_or_else(|| format!("{path}: there is nothing at {}", shown(step)))?;
    }
    match (last, &mut at.data) {
        (Segment::Key(key), Data::Mapping(_)) => {
            at.set(key, value);
            Ok(())
        }
        (Segment::Index(index), Data::Sequence(items)) if *index < items.len() => {
            items[*index] = value;
            Ok(())
        }
        (step, Data::Scalar(_) | Data::Sequence(_) | Data::Mapping(_)) => Err(format!("{path}: there is no place for {}", shown(step))),
    }
}

fn below<'a>(at: &'a mut Yaml, step: &Segment) -> Option<&'a mut Yaml> {
    match step {
        Segment::Key(key) => at.child(key),
        Segment::Index(index) => at.items_mut().get_mut(*index),
    }
}

fn shown(step: &Segment) -> String {
    match step {
        Segment::Key(key) => key.clone(),
        Segment::Index(index) => format!("[{index}]"),
    }
}

#[cfg(test)]
mod tests {
    use whittle_cluster::yaml::{emit, parse as yaml};

    use super::*;

    fn changed(text: &str, path: &str, value: &str) -> Result<String, String> {
        let mut root = yaml(text).0.remove(0).root;
        put(&mut root, &parse(path)?, Yaml::plain(value))?;
        Ok(emit(&root))
    }

    #[test]
    fn values_are_put_where_the_path_leads() {
        for (text, path, wanted) in [
            ("a:\n  b: 1\n", "a.b", "a:\n  b: 2\n"),
            ("a: {}\n", "a.b.c", "a:\n  b:\n    c: 2\n"),
            ("a:\n- b: 1\n", "a[0].b", "a:\n  - b: 2\n"),
            ("a: {}\n", "a[example.com/team]", "a:\n  example.com/team: 2\n"),
        ] {
            assert_eq!(changed(text, path, "2").unwrap(), wanted, "{path}");
        }
        for (path, part) in
            [("a..b", "no path"), ("a[0", "no path"), ("", "no path"), ("a[7].b", "nothing at [7]"), ("a.b", "no place for b")]
        {
            assert!(changed("a:\n- b: 1\n", path, "2").unwrap_err().contains(part), "{path}");
        }
    }
}
